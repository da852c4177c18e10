import type { Violation } from '../../../../src/foundation/base/index.ts'
import type { Db } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { createSecretStore, generateKeyRingText, parseKeyRing } from '../../../../src/foundation/secrets/index.ts'
import {
  createEnvironmentIntegration,
  createIntegration,
  type EnvironmentIntegrationInput,
  type IntegrationInput,
} from '../../../../src/platform/integrations/index.ts'
import {
  bootstrap,
  createEnvironment,
  createTeam,
  type EnvironmentScope,
} from '../../../../src/platform/tenancy/index.ts'
import { testDatabase } from '../../../support/database.ts'

/** A definition that passes every check. */
export const CONFIG: JsonObject = {
  base_url: 'https://api.example.com',
  label: 'Example',
  headers: { 'x-app': 'patchbay' },
  credentials: { format: 'api_key', config: { fields: [{ name: 'api_key', type: 'password', required: true }] } },
  authorization: { format: 'bearer', config: { token: '{{api_key}}' } },
  resources: { issues: { list: { method: 'get', path: '/issues', response_path: 'data' } } },
}

/** A definition with one secret of its owner. */
export const CONFIG_WITH_SECRET: JsonObject = {
  ...CONFIG,
  authorization: { format: 'header', config: { header_name: 'x-key', header_value: 'the-owners-secret' } },
}

export const FIRST_PAGE = { before: undefined, limit: 100 } as const

/** Rejects one URL, so that a test can show whether URLs are checked. */
function checkUrls(config: JsonObject, path: string): readonly Violation[] {
  if (config.base_url !== 'https://forbidden.example.com') return []
  return [{ field: `${path}.base_url`, description: 'must not point there', rule: 'url.not_allowed' }]
}

/** A database with two teams of one environment each, and what the functions under test need. */
export async function integrationsFixture() {
  const { database, target } = await testDatabase()
  const tx = database.pool
  const secrets = createSecretStore(parseKeyRing(generateKeyRingText('k1')))
  const deps = { secrets, checkUrls }
  const first = await bootstrap(database)
  if (first === undefined) throw new Error('a fresh database has an operator')
  const own: EnvironmentScope = { teamId: first.teamId, environmentId: first.environmentId }
  const other = await newScope(tx, own)
  let made = 0

  return {
    database,
    target,
    tx,
    secrets,
    deps,
    /** The team under test, and another one. */
    own,
    other,
    /** A team of its own with one environment. */
    newScope: () => newScope(tx, own),
    /** An integration of `own`, called something new. */
    addIntegration: (input: Partial<IntegrationInput> = {}, scope: EnvironmentScope = own) =>
      database.transaction((each) =>
        createIntegration(deps, each, scope.teamId, { name: `integration-${++made}`, config: CONFIG, ...input }),
      ),
    install: (input: EnvironmentIntegrationInput, scope: EnvironmentScope = own) =>
      database.transaction((each) => createEnvironmentIntegration(deps, each, scope, input)),
  }
}

async function newScope(tx: Db, operator: EnvironmentScope): Promise<EnvironmentScope> {
  const team = await createTeam(tx, { teamId: operator.teamId, isOperator: true }, { name: 'another' })
  const environment = await createEnvironment(tx, team.id, { name: 'default' })
  return { teamId: team.id, environmentId: environment.id }
}
