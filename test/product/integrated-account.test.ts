import { beforeAll, describe, expect, it } from 'vitest'
import { EnvironmentIntegrationService } from '../../gen/patchbay/v1/environment_integration_service_pb.ts'
import { IntegratedAccountService } from '../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { IntegrationService } from '../../gen/patchbay/v1/integration_service_pb.ts'
import { SyncJobCronTriggerService } from '../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
import { newId } from '../../src/foundation/base/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import type { Client } from '../support/client.ts'
import { statusOver, TIME, UUID } from '../support/matchers.ts'
import {
  createApiTenant,
  EXAMPLE_CONFIG,
  freshName,
  idOf,
  type SeededTenant,
  seedTenant,
} from '../support/seeded-tenant.ts'

const {
  createIntegratedAccount: create,
  getIntegratedAccount: get,
  listIntegratedAccounts: list,
  updateIntegratedAccount: update,
  deleteIntegratedAccount: remove,
  listIntegratedAccountHistory: history,
} = IntegratedAccountService.method

const app = await startTestApp()
const clients = app.clients()
const admin = app.client('connect', { token: app.first.teamToken })
const SECRET = 'planted-api-key'

/** An installation of an integration with this config. */
async function installed(config: JsonObject = EXAMPLE_CONFIG, fields: JsonObject = {}) {
  const name = freshName('example')
  const integrationId = await idOf(admin, IntegrationService.method.createIntegration, { name, config })
  const request = { integration_id: integrationId, ...fields }
  const id = await idOf(admin, EnvironmentIntegrationService.method.createEnvironmentIntegration, request, {
    token: app.first.environmentToken,
  })
  return { id, integrationId, name }
}

const installation = await installed()

async function connect(client: Client, fields: JsonObject = {}) {
  return await client.ok(create, {
    environment_integration_id: installation.id,
    tenant_id: 'acme',
    credentials: { api_key: SECRET },
    ...fields,
  })
}

describe.each(inTurn(clients))('connecting an account over $wire', (client) => {
  it('answers with every field of the specification, and the same reads back on every wire', async () => {
    const account = await connect(client, {
      authentication_method: 'api_key',
      context: { subdomain: 'acme', nested: { a: [1, 'two', null] } },
      region: 'eu',
      is_sandbox: true,
      object_store_context_fields: ['archive'],
    })

    expect(account).toEqual({
      id: UUID,
      tenant_id: 'acme',
      environment_integration_id: installation.id,
      context: { subdomain: 'acme', nested: { a: [1, 'two', null] } },
      status: 'active',
      last_error: '',
      last_action_result: {},
      created_at: TIME,
      updated_at: account.created_at,
      is_sandbox: true,
      authentication_method: 'api_key',
      credential: 'api_key',
      region: 'eu',
      environment_id: app.first.environmentId,
      object_store_context_fields: ['archive'],
      context_errors: [],
      webhook_subscriptions: [],
      external_id: '',
      terms_url: '',
      etag: '"v1"',
      integration: {
        id: installation.integrationId,
        name: installation.name,
        category: '',
        is_beta: false,
        config: EXAMPLE_CONFIG,
        team_id: app.first.teamId,
        sharing: 'deny',
        created_at: TIME,
        updated_at: TIME,
        etag: '"v1"',
      },
    })
    for (const other of clients) expect(await other.ok(get, { id: account.id })).toEqual(account)
  })

  it('defaults to the only method, region wnam, no context, no sandbox', async () => {
    expect(await connect(client)).toMatchObject({
      authentication_method: 'api_key',
      region: 'wnam',
      context: {},
      is_sandbox: false,
      object_store_context_fields: [],
    })
  })

  it('lets one tenant connect several accounts', async () => {
    expect((await connect(client)).id).not.toBe((await connect(client)).id)
  })

  it('never shows the credentials', async () => {
    const account = await connect(client)
    const answers = [
      account,
      await client.ok(get, { id: account.id }),
      await client.ok(list, {}),
      await client.ok(update, { id: account.id, context: { a: 1 } }),
      await client.ok(history, { id: account.id }),
    ]
    for (const answer of answers) expect(JSON.stringify(answer)).not.toContain(SECRET)
  })

  it('writes its history', async () => {
    const { id } = await connect(client)
    const { history_entries } = await client.ok(history, { id })

    expect(history_entries).toEqual([
      { from_status: 'connecting', to_status: 'active', cause: 'steps_passed', last_error: '', occurred_at: TIME },
      { to_status: 'connecting', cause: 'created', last_error: '', occurred_at: TIME },
    ])
  })
})

describe.each(inTurn(clients))('connecting with credentials that do not fit over $wire', (client) => {
  it.each([
    { what: 'a required one is missing', fields: { credentials: {} }, field: 'credentials.api_key' },
    { what: 'none at all', fields: { credentials: null }, field: 'credentials.api_key' },
    {
      what: 'an unknown one',
      fields: { credentials: { api_key: 'k', token: 'x' } },
      field: 'credentials.token',
    },
    { what: 'of the wrong type', fields: { credentials: { api_key: { nested: 1 } } }, field: 'credentials.api_key' },
    {
      what: 'of a method that is not offered',
      fields: { authentication_method: 'oauth2' },
      field: 'authentication_method',
    },
  ])('is rejected with the field: $what', async ({ fields, field }) => {
    const before = await client.ok(list, { page_size: 1000 })
    const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))
    const defaults = fields.credentials === null ? {} : { credentials: { api_key: 'k' } }

    const rejection = await client.callError(create, {
      environment_integration_id: installation.id,
      tenant_id: 'acme',
      ...defaults,
      ...given,
    })

    expect(rejection).toMatchObject({
      code: 'INVALID_ARGUMENT',
      reason: 'CREDENTIALS_INVALID',
      httpStatus: statusOver(client, 400),
    })
    expect(rejection.violations).toEqual([expect.objectContaining({ field })])
    expect(await client.ok(list, { page_size: 1000 })).toEqual(before)
  })

  it('rejects the mask of a secret', async () => {
    const request = { environment_integration_id: installation.id, tenant_id: 'a', credentials: { api_key: '***' } }
    const rejection = await client.callError(create, request)

    expect(rejection).toMatchObject({ code: 'INVALID_ARGUMENT', reason: 'SECRET_MASKED' })
    expect(rejection.violations).toEqual([expect.objectContaining({ field: 'credentials.api_key' })])
  })
})

describe.each(inTurn(clients))('connecting through a disabled installation over $wire', (client) => {
  it('is rejected', async () => {
    const { id } = await installed(EXAMPLE_CONFIG, { is_enabled: false })
    const request = { environment_integration_id: id, tenant_id: 'acme', credentials: { api_key: 'k' } }

    expect(await client.callError(create, request)).toMatchObject({
      code: 'FAILED_PRECONDITION',
      reason: 'INTEGRATION_DISABLED',
      httpStatus: statusOver(client, 400),
    })
  })
})

describe.each(inTurn(clients))('connecting through an integration with steps to run over $wire', (client) => {
  it('leaves the account connecting', async () => {
    const step = { type: 'request', config: { method: 'get', path: '/me' } }
    const { id } = await installed({ ...EXAMPLE_CONFIG, actions: { validation: step } })
    const account = await connect(client, { environment_integration_id: id })

    expect(account.status).toBe('connecting')
  })
})

describe.each(inTurn(clients))('a request that breaks several rules over $wire', (client) => {
  it('is rejected for all of them at once', async () => {
    const rejection = await client.callError(create, {
      environment_integration_id: 'nope',
      tenant_id: '',
      region: 'mars',
      authentication_method: 'password',
      object_store_context_fields: ['a', 'a'],
      request_id: '',
    })

    expect(rejection).toMatchObject({
      code: 'INVALID_ARGUMENT',
      reason: 'INVALID_FIELD',
      httpStatus: statusOver(client, 400),
    })
    expect(Object.fromEntries(rejection.violations.map(({ field, rule }) => [field, rule]))).toEqual({
      environment_integration_id: 'string.uuid',
      tenant_id: 'string.min_len',
      region: 'string.in',
      authentication_method: 'string.in',
      object_store_context_fields: 'repeated.unique',
      request_id: 'string.min_len',
    })
  })
})

describe.each(inTurn(clients))('several credentials with one authentication method over $wire', (client) => {
  const fields = [{ name: 'key', type: 'password', required: true }]
  const credentials = {
    jwt: { config: { algorithm: 'HS256', key: '{{key}}', claims: {}, fields } },
    vendor_oauth: { config: { token_request: { path: '/login' }, token_expression: 'body.token', fields } },
    api_key: {},
    sandbox: { format: 'api_key', label: 'Sandbox', config: { fields } },
  }
  let shared: { environment_integration_id: string; tenant_id: string; credentials: JsonObject }

  beforeAll(async () => {
    const { id } = await installed({ ...EXAMPLE_CONFIG, credentials })
    shared = { environment_integration_id: id, tenant_id: 'acme', credentials: { key: 'k' } }
  })

  it('are chosen by key, shown, listed by it, and exchanged for one another', async () => {
    const byJwt = await client.ok(create, { ...shared, credential: 'jwt' })
    const byLogin = await client.ok(create, {
      ...shared,
      authentication_method: 'vendor_oauth',
      credential: 'vendor_oauth',
    })
    expect([byJwt, byLogin]).toMatchObject([
      { credential: 'jwt', authentication_method: 'vendor_oauth' },
      { credential: 'vendor_oauth', authentication_method: 'vendor_oauth' },
    ])
    const { environment_integration_id } = shared
    const { integrated_accounts } = await client.ok(list, { environment_integration_id, credential: 'jwt' })
    expect(integrated_accounts).toMatchObject([{ id: byJwt.id }])
    const { updateIntegratedAccountCredentials } = IntegratedAccountService.method
    const kept = await client.ok(updateIntegratedAccountCredentials, { id: byJwt.id, credentials: {} })
    expect(kept.credential).toBe('jwt')
    const change = { id: byJwt.id, credential: 'vendor_oauth', credentials: { key: 'other' } }
    expect(await client.ok(updateIntegratedAccountCredentials, change)).toMatchObject({ credential: 'vendor_oauth' })
  })

  it('may have one format', async () => {
    const live = await client.ok(create, { ...shared, credential: 'api_key', credentials: { api_key: 'k' } })
    const sandbox = await client.ok(create, { ...shared, credential: 'sandbox' })
    expect([live, sandbox]).toMatchObject([
      { credential: 'api_key', authentication_method: 'api_key' },
      { credential: 'sandbox', authentication_method: 'api_key' },
    ])
    const { environment_integration_id } = shared
    const { integrated_accounts } = await client.ok(list, { environment_integration_id, credential: 'sandbox' })
    expect(integrated_accounts).toMatchObject([{ id: sandbox.id }])
  })

  it.each([
    ['the method alone', { authentication_method: 'vendor_oauth' }, 'credential', 'one of jwt, vendor_oauth'],
    ['neither', {}, 'credential', 'one of jwt, vendor_oauth, api_key, sandbox'],
    ['an unknown key', { credential: 'oauth2' }, 'credential', 'there are api_key, jwt, sandbox, vendor_oauth'],
    ['a method of several', { authentication_method: 'api_key' }, 'credential', 'one of api_key, sandbox'],
    [
      'a key of another method',
      { authentication_method: 'api_key', credential: 'jwt' },
      'authentication_method',
      'must be vendor_oauth or absent: the credential jwt has that method',
    ],
  ])('are an error for %s', async (_, chosen, field, words) => {
    const rejection = await client.callError(create, { ...shared, ...chosen })
    expect(rejection.reason).toBe('CREDENTIALS_INVALID')
    expect(rejection.violations).toEqual([
      expect.objectContaining({ field, description: expect.stringContaining(words) }),
    ])
  })
})

describe.each(inTurn(clients))('listing accounts over $wire', (client) => {
  let world: SeededTenant
  let ids: readonly string[]

  beforeAll(async () => {
    world = await seedTenant(app, await createApiTenant(app))
    const token = world.environmentToken
    const shared = {
      environment_integration_id: world.environmentIntegrationId,
      tenant_id: 'acme',
      credentials: { api_key: 'k' },
    }
    const make = (fields: JsonObject) => idOf(client, create, { ...shared, ...fields }, { token })
    ids = [
      world.integratedAccountId,
      await make({ region: 'apac' }),
      await make({ tenant_id: 'globex', is_sandbox: true }),
    ]
  })

  it.each([
    { filter: {}, expected: [2, 1, 0] },
    { filter: { tenant_id: 'acme' }, expected: [1, 0] },
    { filter: { tenant_id: 'acme', region: 'apac' }, expected: [1] },
    { filter: { is_sandbox: true }, expected: [2] },
    { filter: { is_sandbox: false, region: 'wnam' }, expected: [0] },
    { filter: { status: 'active' }, expected: [2, 1, 0] },
    { filter: { status: 'needs_reauth' }, expected: [] },
    { filter: { environment_integration_id: newId() }, expected: [] },
    { filter: { integration_name: 'not-installed' }, expected: [] },
  ])('filters by $filter', async ({ filter, expected }) => {
    const { integrated_accounts } = await client.ok(list, filter, { token: world.environmentToken })
    const found = integrated_accounts as unknown as readonly JsonObject[]
    expect(found.map(({ id }) => id)).toEqual(expected.map((index) => ids[index]))
  })

  it('filters by the name of the integration', async () => {
    const token = world.environmentToken
    const { integration } = await client.ok(get, { id: world.integratedAccountId }, { token })
    const { name = '' } = integration as JsonObject
    const { integrated_accounts } = await client.ok(list, { integration_name: name }, { token })
    expect(integrated_accounts).toHaveLength(3)
  })

  it('shows the integration’s config with view=full alone', async () => {
    const configs = async (request: JsonObject) => {
      const answer = await client.ok(list, request, { token: world.environmentToken })
      const found = answer.integrated_accounts as unknown as readonly { integration: JsonObject }[]
      return found.map(({ integration }) => integration.config)
    }
    expect(await configs({})).toEqual([undefined, undefined, undefined])
    expect(await configs({ view: 'full' })).toEqual([EXAMPLE_CONFIG, EXAMPLE_CONFIG, EXAMPLE_CONFIG])
  })
})

describe.each(inTurn(clients))('disconnecting an account over $wire', (client) => {
  it('forgets it, its history and its credentials', async () => {
    const { id } = await connect(client)

    expect(await client.ok(remove, { id })).toEqual({})
    expect(await client.callError(get, { id })).toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
    expect(await client.callError(history, { id })).toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  })

  it('for which triggers run is rejected, and with force takes them along', async () => {
    const { integratedAccountId: id, syncJobCronTriggerId } = await seedTenant(app, app.first)
    const { getSyncJobCronTrigger } = SyncJobCronTriggerService.method

    expect(await client.callError(remove, { id })).toMatchObject({
      code: 'FAILED_PRECONDITION',
      reason: 'RESOURCE_IN_USE',
      resource: { type: 'integrated_account', id },
      httpStatus: statusOver(client, 400),
    })
    await client.ok(getSyncJobCronTrigger, { id: syncJobCronTriggerId })

    expect(await client.ok(remove, { id, force: true })).toEqual({})
    expect(await client.callError(getSyncJobCronTrigger, { id: syncJobCronTriggerId })).toMatchObject({
      code: 'NOT_FOUND',
    })
  })
})
