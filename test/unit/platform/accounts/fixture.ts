import { type Clock, systemClock } from '../../../../src/foundation/base/index.ts'
import { execute, query } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import {
  type AccountDependencies,
  changeIntegratedAccount,
  createAccountReader,
  createIntegratedAccount,
  type IntegratedAccountChange,
  type IntegratedAccountInput,
} from '../../../../src/platform/accounts/index.ts'
import {
  createDefinitionCache,
  createIntegrationCache,
  type DefinitionCache,
} from '../../../../src/platform/integrations/index.ts'
import { createContextValueStore } from '../../../../src/platform/objects/index.ts'
import type { EnvironmentScope } from '../../../../src/platform/tenancy/index.ts'
import { MemoryObjects } from '../../../support/memory-objects.ts'
import { CONFIG, integrationsFixture } from '../integrations/fixture.ts'

/** A definition that asks for a secret and for a value that is none. */
export const FIELDS_CONFIG: JsonObject = {
  ...CONFIG,
  base_url: 'https://{{subdomain}}.example.com',
  credentials: {
    format: 'api_key',
    config: {
      fields: [
        { name: 'api_key', type: 'password', required: true },
        { name: 'subdomain', required: true, format: 'hostname_label', transform: 'lowercase', suffix: '.example.com' },
        { name: 'pin', type: 'password' },
      ],
    },
  },
}

export const CREDENTIALS: JsonObject = { api_key: 'the-accounts-secret', subdomain: 'Acme.example.com' }

/** What differs from a service without webhooks. */
interface AccountsFixtureOptions {
  /** Values of `{{connection.<name>}}`. */
  readonly connection?: () => JsonObject
  readonly subscriptionsOf?: (definitions: DefinitionCache) => AccountDependencies['subscriptions']
}

/** The integrations fixture, and accounts on top of it. */
export async function accountsFixture(
  clock: Clock = systemClock,
  { connection, subscriptionsOf = () => NO_SUBSCRIPTIONS }: AccountsFixtureOptions = {},
) {
  const fixture = await integrationsFixture()
  const { database, tx, secrets, own, addIntegration, install } = fixture
  const definitions = createDefinitionCache(secrets, connection)
  const integrations = createIntegrationCache()
  const reader = createAccountReader(database)
  const objects = new MemoryObjects()
  const contextValues = createContextValueStore(secrets, objects)
  const deps = {
    secrets,
    definitions,
    integrations,
    contextValues,
    reader,
    subscriptions: subscriptionsOf(definitions),
    clock,
    random: () => 0,
  }

  /** An installation in the scope; `FIELDS_CONFIG` unless another config is given. */
  async function addInstallation(config: JsonObject = FIELDS_CONFIG, scope: EnvironmentScope = own) {
    return await install({ integrationId: (await addIntegration({ config }, scope)).id }, scope)
  }

  async function connect(input: Partial<IntegratedAccountInput> = {}, scope: EnvironmentScope = own) {
    const environmentIntegrationId = input.environmentIntegrationId ?? (await addInstallation(undefined, scope)).id
    const whole = { tenantId: 'acme', credentials: CREDENTIALS, ...input, environmentIntegrationId }
    return await database.transaction((each) => createIntegratedAccount(deps, each, scope, whole))
  }

  /** Events about an account in the outbox, oldest first. */
  async function eventsOf(id: string) {
    const sql = 'select type, payload from event where subject_id = :id order by id'
    const rows = await query<{ readonly type: string; readonly payload: JsonObject }>(tx, sql, { id })
    return rows.map(({ type, payload }) => ({ name: type.replace('integrated_account:', ''), payload }))
  }

  return {
    ...fixture,
    eventsOf,
    objects,
    accountDeps: deps,
    addInstallation,
    connect,
    update: (change: IntegratedAccountChange, scope: EnvironmentScope = own) =>
      changeIntegratedAccount(deps, database, scope, change),
  }
}

/** For definitions that order no webhooks. */
const NO_SUBSCRIPTIONS: AccountDependencies['subscriptions'] = {
  schedule: async () => {},
  list: async () => [],
  end: async () => undefined,
}

/** Removes what the triggers of the tests are made of. */
export const triggersOfTests: AccountDependencies['triggers'] = {
  deleteByAccount: async (tx, environmentId, integratedAccountId) => {
    const sql =
      'delete from sync_job_cron_trigger where environment_id = :environmentId and integrated_account_id = :integratedAccountId'
    await execute(tx, sql, { environmentId, integratedAccountId })
  },
  stopByInstallations: async () => {},
}
