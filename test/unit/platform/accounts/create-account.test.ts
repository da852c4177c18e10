import { describe, expect, it } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import { query } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { createIntegratedAccount, listIntegratedAccountHistory } from '../../../../src/platform/accounts/index.ts'
import { updateEnvironmentIntegration } from '../../../../src/platform/integrations/index.ts'
import { CONFIG } from '../integrations/fixture.ts'
import { accountsFixture, CREDENTIALS, FIELDS_CONFIG } from './fixture.ts'

const fixture = await accountsFixture()
const { database, tx, secrets, own, other, deps, accountDeps, addInstallation, connect } = fixture

const TWO_METHODS: JsonObject = {
  ...CONFIG,
  credentials: {
    api_key: { config: { fields: [{ name: 'api_key', type: 'password', required: true }] } },
    oauth2: {
      config: {
        client: { id: 'a', secret: 'b' },
        auth: { tokenHost: 'https://id.example.com', tokenPath: '/token', authorizePath: '/authorize' },
      },
    },
  },
}
const OAUTH_ONLY: JsonObject = {
  ...CONFIG,
  authorization: { format: 'bearer' },
  credentials: { oauth2: (TWO_METHODS.credentials as JsonObject).oauth2! },
}
const TWO_KEYS: JsonObject = {
  ...CONFIG,
  credentials: {
    api_key: { config: { fields: [{ name: 'api_key', type: 'password', required: true }] } },
    legacy: { format: 'api_key', config: { fields: [{ name: 'key', type: 'password', required: true }] } },
  },
}
const NO_CREDENTIALS: JsonObject = { base_url: 'https://api.example.com', resources: {} }

const historyOf = async (id: string) =>
  (await listIntegratedAccountHistory(tx, own, id, { before: undefined, limit: 9 })).map(
    ({ fromStatus, toStatus, cause }) => [fromStatus, toStatus, cause],
  )

describe('createIntegratedAccount', () => {
  it('connects at once when the definition has no steps, one row of history per change', async () => {
    const account = await connect()
    expect(account).toMatchObject({ status: 'active', authenticationMethod: 'api_key', tenantId: 'acme', version: 1 })
    expect(account).toMatchObject({ region: 'wnam', isSandbox: false, objectStoreContextFields: [], lastError: '' })
    expect(await historyOf(account.id)).toEqual([
      ['connecting', 'active', 'steps_passed'],
      [null, 'connecting', 'created'],
    ])
  })

  it.each<[string, JsonObject]>([
    ['post_install', { actions: { post_install: { type: 'request', config: { path: '/hooks', method: 'POST' } } } }],
    ['validation', { actions: { validation: { type: 'request', config: { path: '/me' } } } }],
    ['a verification request', { credentials: { format: 'api_key', config: { verification: { path: '/me' } } } }],
  ])('waits in connecting for %s', async (_, config) => {
    const installation = await addInstallation({ ...CONFIG, ...config })
    const account = await connect({ environmentIntegrationId: installation.id, credentials: { api_key: 'x' } })
    expect(account.status).toBe('connecting')
    expect(await historyOf(account.id)).toEqual([[null, 'connecting', 'created']])
  })

  it('seals secret fields and puts the others, transformed, into the context', async () => {
    const account = await connect({ context: { plan: 'gold', subdomain: 'ignored', nothing: null } })
    expect(account.context).toEqual({ plan: 'gold', subdomain: 'acme' })
    const ref = { ownerId: own.environmentId, subjectType: 'integrated_account', subjectId: account.id } as const
    expect(await secrets.get(tx, ref)).toEqual({ api_key: '"the-accounts-secret"' })
  })

  it('takes what is given', async () => {
    const given = { region: 'eu', isSandbox: true, objectStoreContextFields: ['big'] } as const
    expect(await connect({ ...given, authenticationMethod: 'api_key' })).toMatchObject(given)
  })

  it('answers with the integration, masked and without its team', async () => {
    const { integration } = await connect()
    expect(integration.config).toEqual(FIELDS_CONFIG)
    expect(integration).not.toHaveProperty('team')
    expect(integration).not.toHaveProperty('installedEnvironment')
  })

  it('connects without credentials where the definition asks for none', async () => {
    const { id } = await addInstallation(NO_CREDENTIALS)
    const account = await connect({ environmentIntegrationId: id, credentials: {} })
    expect(account).toMatchObject({ authenticationMethod: 'api_key', status: 'active' })
  })

  it.each<[string, JsonObject, string[]]>([
    ['missing ones', {}, ['credentials.api_key', 'credentials.subdomain']],
    ['unknown ones', { ...CREDENTIALS, api_kye: 'x' }, ['credentials.api_kye']],
    ['invalid ones', { ...CREDENTIALS, subdomain: 'a.b' }, ['credentials.subdomain']],
    ['all at once', { subdomain: 'a.b', x: 1 }, ['credentials.api_key', 'credentials.subdomain', 'credentials.x']],
  ])('rejects credentials with every field, and stores nothing: %s', async (_, credentials, fields) => {
    const installation = await addInstallation()
    const attempt = connect({ environmentIntegrationId: installation.id, credentials })
    const failure = await attempt.catch((error) => error)
    expect(failure.reason).toBe('CREDENTIALS_INVALID')
    expect(failure.violations.map(({ field }: { field: string }) => field).toSorted()).toEqual(fields)
    expect(
      await query(tx, 'select 1 from integrated_account where environment_integration_id = :id', {
        id: installation.id,
      }),
    ).toEqual([])
  })

  it.each([
    ['a line break, where it is sent in a header', 'k\r\nx-admin: 1', 'string.header'],
    ['characters that no header can carry', 'ключ', 'string.header'],
    ['NUL', 'k\0', 'string.control'],
    ['an escape sequence', 'k\u001b[A', 'string.control'],
  ])('rejects a credential with %s', async (_, api_key, rule) => {
    const attempt = connect({ credentials: { ...CREDENTIALS, api_key } })
    await expect(attempt).rejects.toMatchObject({
      reason: 'CREDENTIALS_INVALID',
      violations: [{ field: 'credentials.api_key', rule }],
    })
  })

  it('takes off the line break with which a credential was copied', async () => {
    expect(await connect({ credentials: { ...CREDENTIALS, api_key: 'key\n' } })).toMatchObject({ status: 'active' })
  })

  it('takes a credential of several lines, such as a key in PEM, that no header carries as it is', async () => {
    const fields = [{ name: 'pem', type: 'password' }]
    const authorization = { format: 'jwt', config: { algorithm: 'RS256', key: '{{pem}}' } }
    const { id } = await addInstallation({ credentials: { format: 'api_key', config: { fields } }, authorization })
    const pem = '-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n'
    expect(await connect({ environmentIntegrationId: id, credentials: { pem } })).toMatchObject({ status: 'active' })
  })

  it('keeps the content of a file, which is a secret unless it is said to be none', async () => {
    const fields = [
      { name: 'key', type: 'file', required: true },
      { name: 'note', type: 'textarea', is_secret: true },
      { name: 'certificate', type: 'file', is_secret: false },
      { name: 'days', type: 'number' },
      { name: 'trial', type: 'checkbox' },
      { name: 'regions', type: 'multi_select', options: [{ value: 'eu' }, { value: 'us' }] },
    ]
    const { id } = await addInstallation({ credentials: { format: 'api_key', config: { fields } } })
    const given = { key: 'k-canary', note: 'n-canary', certificate: 'CERT', days: '7', trial: 'on', regions: ['us'] }
    const account = await connect({ environmentIntegrationId: id, credentials: given })
    expect(account.context).toEqual({ certificate: 'CERT', days: 7, trial: true, regions: ['us'] })
  })

  it('rejects the mask of a secret', async () => {
    const attempt = connect({ credentials: { ...CREDENTIALS, api_key: '***' } })
    await expect(attempt).rejects.toMatchObject({
      reason: 'SECRET_MASKED',
      violations: [{ field: 'credentials.api_key' }],
    })
  })

  it.each([
    ['none of several methods', TWO_METHODS, undefined, 'authentication_method', 'required'],
    ['none of several credentials of one method', TWO_KEYS, undefined, 'credential', 'required'],
    ['the method of several credentials', TWO_KEYS, 'api_key', 'credential', 'required'],
    ['a method that is not offered', TWO_METHODS, 'vendor_oauth', 'authentication_method', 'enum'],
    ['a method that needs the customer', OAUTH_ONLY, undefined, 'authentication_method', 'method.not_headless'],
  ] as const)('rejects %s', async (_, config, authenticationMethod, field, rule) => {
    const { id } = await addInstallation(config)
    const attempt = connect({ environmentIntegrationId: id, authenticationMethod, credentials: {} })
    await expect(attempt).rejects.toMatchObject({
      reason: 'CREDENTIALS_INVALID',
      violations: [{ field, rule }],
    })
  })

  it('takes one of several methods when it is named', async () => {
    const { id } = await addInstallation(TWO_METHODS)
    const input = {
      environmentIntegrationId: id,
      authenticationMethod: 'api_key',
      credentials: { api_key: 'x' },
    } as const
    expect(await connect(input)).toMatchObject({ authenticationMethod: 'api_key' })
  })

  it.each([['environment_variables'], ['env'], ['oauth'], ['api_key'], ['pin']])(
    'rejects the context key %s',
    async (key) => {
      await expect(connect({ context: { [key]: 'x', fine: 1 } })).rejects.toMatchObject({
        reason: 'CONTEXT_KEY_RESERVED',
        violations: [{ field: `context.${key}` }],
      })
    },
  )

  it.each([
    ['an unknown installation', async () => newId()],
    ['an installation of another environment', async () => (await addInstallation(undefined, other)).id],
  ])('does not find %s', async (_, id) => {
    const environmentIntegrationId = await id()
    await expect(connect({ environmentIntegrationId })).rejects.toMatchObject({
      reason: 'RESOURCE_NOT_FOUND',
      resource: { type: 'environment_integration', id: environmentIntegrationId },
    })
  })

  it('fails while the installation is disabled', async () => {
    const { id } = await addInstallation()
    await database.transaction((tx) => updateEnvironmentIntegration(deps, tx, own, { id, isEnabled: false }))
    const attempt = connect({ environmentIntegrationId: id })
    await expect(attempt).rejects.toMatchObject({ reason: 'INTEGRATION_DISABLED' })
  })

  it('leaves nothing behind when the transaction it runs in is rolled back', async () => {
    const installation = await addInstallation()
    const input = { environmentIntegrationId: installation.id, tenantId: 'gone', credentials: CREDENTIALS }
    const attempt = database.transaction(async (each) => {
      await createIntegratedAccount(accountDeps, each, own, input)
      throw new Error('later')
    })
    await expect(attempt).rejects.toThrow('later')
    const sql = `select 1 from integrated_account where tenant_id = 'gone'
      union all select 1 from integrated_account_history h where not exists
        (select 1 from integrated_account a where a.id = h.integrated_account_id)
      union all select 1 from secret where subject_type = 'integrated_account' and not exists
        (select 1 from integrated_account a where a.id = subject_id)`
    expect(await query(tx, sql)).toEqual([])
  })
})
