import { describe, expect, it } from 'vitest'
import { IntegratedAccountService } from '../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { IntegrationService } from '../../gen/patchbay/v1/integration_service_pb.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import type { Client } from '../support/client.ts'
import { statusOver, TIME } from '../support/matchers.ts'
import { freshName, seedTenant } from '../support/seeded-tenant.ts'

const {
  createIntegratedAccount: create,
  getIntegratedAccount: get,
  updateIntegratedAccount: update,
  listIntegratedAccountHistory: history,
} = IntegratedAccountService.method

const app = await startTestApp()
const clients = app.clients()
const admin = app.client('connect', { token: app.first.teamToken })
const world = await seedTenant(app, app.first)

async function connect(client: Client, fields: JsonObject = {}) {
  return await client.ok(create, {
    environment_integration_id: world.environmentIntegrationId,
    tenant_id: 'acme',
    credentials: { api_key: 'k' },
    ...fields,
  })
}

describe.each(inTurn(clients))('updating an account over $wire', (client) => {
  it('with an empty body changes nothing and answers the account', async () => {
    const account = await connect(client, { context: { a: 1 } })
    expect(await client.ok(update, { id: account.id })).toEqual(account)
    expect(await client.ok(update, { id: account.id, context: {} })).toEqual(account)
  })

  it('changes the tenant alone', async () => {
    const account = await connect(client, { context: { a: 1 } })
    expect(await client.ok(update, { id: account.id, tenant_id: 'globex' })).toEqual({
      ...account,
      tenant_id: 'globex',
      updated_at: TIME,
      etag: '"v2"',
    })
  })

  it.each([
    ['an update takes one', update, { tenant_id: 'globex', context: { seats: 3 } }, ['with']],
    ['a read takes one', get, {}, ['select']],
  ] as const)(
    '%s round trip to the database, with the event and all that the answer shows',
    async (_, method, given, expected) => {
      const { id } = await connect(client)
      await client.ok(update, { id, tenant_id: 'warm' })
      const statements: string[] = []
      // The token is read again once its time in the cache is over.
      const note = ({ sql }: { readonly sql: string }) => !sql.includes('api_token') && statements.push(sql)
      app.database.pool.on('query', note)
      await client.ok(method, { id, ...given })
      app.database.pool.removeListener('query', note)
      expect(statements.map((sql) => /^\w+/.exec(sql)?.[0])).toEqual(expected)
    },
  )

  it('merges the context at the top: a given key replaces whole, null removes, the others stay', async () => {
    const account = await connect(client, { context: { kept: 1, replaced: { a: 1, b: 2 }, removed: true } })

    const updated = await client.ok(update, {
      id: account.id,
      context: { replaced: { c: 3 }, removed: null, added: [1, null] },
    })

    expect(updated).toEqual({
      ...account,
      context: { kept: 1, replaced: { c: 3 }, added: [1, null] },
      updated_at: TIME,
      etag: '"v2"',
    })
    for (const other of clients) expect(await other.ok(get, { id: account.id })).toEqual(updated)
  })

  it('works on a sandbox account', async () => {
    const account = await connect(client, { is_sandbox: true })
    const updated = await client.ok(update, { id: account.id, tenant_id: 'sandbox', context: { a: 1 } })
    expect(updated).toMatchObject({ tenant_id: 'sandbox', context: { a: 1 }, is_sandbox: true })
  })

  it('shows the integration as it is now', async () => {
    const account = await connect(client)
    const category = freshName('category')
    await admin.ok(IntegrationService.method.updateIntegration, { id: world.integrationId, category })

    expect(await client.ok(update, { id: account.id, tenant_id: 'x' })).toMatchObject({ integration: { category } })
    await admin.ok(IntegrationService.method.updateIntegration, { id: world.integrationId, category: '' })
  })

  it('leaves status and history alone', async () => {
    const { id } = await connect(client)
    const before = await client.ok(history, { id })
    await client.ok(update, { id, context: { a: 1 } })
    expect(await client.ok(history, { id })).toEqual(before)
  })
})

describe('updates of different context keys at once', () => {
  it('lose none', async () => {
    const { id } = await connect(app.client('rest'))
    const keys = Array.from({ length: 30 }, (_, index) => `key_${index}`)

    await Promise.all(
      keys.map((key, index) => clients[index % clients.length]?.ok(update, { id, context: { [key]: index } })),
    )

    const { context } = await app.client('rest').ok(get, { id })
    expect(Object.keys(context as JsonObject).toSorted()).toEqual(keys.toSorted())
  })
})

describe.each(inTurn(clients))('a context key that the runtime owns over $wire', (client) => {
  it('is rejected with every such key, and nothing is changed', async () => {
    const account = await connect(client, { context: { a: 1 } })

    const rejection = await client.callError(update, {
      id: account.id,
      tenant_id: 'changed',
      context: { fine: 1, oauth: {}, env: null, environment_variables: 1 },
    })

    expect(rejection).toMatchObject({
      code: 'INVALID_ARGUMENT',
      reason: 'CONTEXT_KEY_RESERVED',
      httpStatus: statusOver(client, 400),
    })
    expect(rejection.violations.map(({ field }) => field)).toEqual([
      'context.oauth',
      'context.env',
      'context.environment_variables',
    ])
    expect(await client.ok(get, { id: account.id })).toEqual(account)
  })

  it('is rejected when connecting too', async () => {
    const request = {
      environment_integration_id: world.environmentIntegrationId,
      tenant_id: 'a',
      credentials: { api_key: 'k' },
    }
    const rejection = await client.callError(create, { ...request, context: { oauth: {} } })
    expect(rejection.reason).toBe('CONTEXT_KEY_RESERVED')
  })

  it('is also the name of a credential', async () => {
    const { id } = await connect(client)
    const rejection = await client.callError(update, { id, context: { api_key: 'leak' } })

    expect(rejection).toMatchObject({ code: 'INVALID_ARGUMENT', reason: 'CONTEXT_KEY_RESERVED' })
    expect(rejection.violations).toEqual([expect.objectContaining({ field: 'context.api_key' })])
  })
})

describe.each(inTurn(clients))('a tenant over $wire', (client) => {
  it.each([
    { tenant: '', rule: 'string.min_len' },
    { tenant: 'x'.repeat(256), rule: 'string.max_len' },
  ])('of $tenant.length characters is rejected', async ({ tenant, rule }) => {
    const account = await connect(client)
    const rejection = await client.callError(update, { id: account.id, tenant_id: tenant })

    expect(rejection).toMatchObject({ code: 'INVALID_ARGUMENT', reason: 'INVALID_FIELD' })
    expect(rejection.violations).toEqual([expect.objectContaining({ field: 'tenant_id', rule })])
    expect(await client.ok(get, { id: account.id })).toEqual(account)
  })

  it('of 255 characters, of any script, is kept as it is', async () => {
    const { id } = await connect(client)
    const tenant = `${'顧'.repeat(254)}🏢`
    expect(await client.ok(update, { id, tenant_id: tenant })).toMatchObject({ tenant_id: tenant })
  })
})
