import { removeAccountsOf } from '../../src/accounts/index.ts'
import type { ServiceDefinition } from '../../src/api/index.ts'
import { createServices, type ServiceDeps } from '../../src/api/services/index.ts'
import type { Clock, JsonObject } from '../../src/base/index.ts'
import { createEgressPolicy, findUrlViolation } from '../../src/egress/index.ts'
import {
  createDefinitionSource,
  createIntegrationCache,
  removeInstallationsIn,
  removeIntegrationsOf,
} from '../../src/integrations/index.ts'
import { RunQueue } from '../../src/queue/index.ts'
import type { Database, Secrets } from '../../src/storage/index.ts'
import { type ArgsRules, checkResources, readSyncResources, resolveArgs } from '../../src/sync/index.ts'

/** Wires the services together, without workers. */
export function composeServices({
  database,
  secrets,
  clock,
}: {
  readonly database: Database
  readonly secrets: Secrets
  readonly clock: Clock
}): readonly ServiceDefinition[] {
  const policy = createEgressPolicy({ allow: '' })
  const urlViolation = (url: string) => findUrlViolation(policy, url)
  const checkUrls = (config: JsonObject, path: string) => {
    const { base_url } = config
    const description = typeof base_url === 'string' && !base_url.startsWith('{{') ? urlViolation(base_url) : undefined
    return description === undefined ? [] : [{ field: `${path}.base_url`, description, rule: 'url.not_allowed' }]
  }
  const accounts = {
    secrets,
    integrations: createIntegrationCache(),
    definitions: createDefinitionSource(secrets),
    triggers: { removeOf: async () => {} },
  }
  const integrations = {
    secrets,
    checkUrls,
    accounts: {
      removeOf: (tx, environmentId, installationId) => removeAccountsOf(accounts, tx, environmentId, installationId),
    },
  } satisfies ServiceDeps['integrations']
  const queue = new RunQueue({ database, random: Math.random })
  const runs = {
    queue,
    resolveArgs: (rules: ArgsRules, given: JsonObject) => resolveArgs(async () => undefined, rules, given),
  }
  return createServices({
    database,
    secrets,
    clock,
    webhooks: { secrets, clock, findUrlViolation: urlViolation },
    integrations,
    accounts,
    runs,
    triggers: {
      ...runs,
      database,
      minTickGapSeconds: 1,
      checkResources: (resources) => checkResources(readSyncResources(resources)),
    },
    contents: {
      removeOfEnvironment: (tx, environmentId) => removeInstallationsIn(integrations, tx, environmentId),
      removeIntegrationsOf: (tx, teamId) => removeIntegrationsOf(integrations, tx, teamId),
      shredSecrets: async () => {},
    },
  })
}
