import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { IntegratedAccountService } from '../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { ProxyService } from '../../gen/patchbay/v1/proxy_service_pb.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { changeAccountStatus } from '../../src/platform/accounts/status.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import type { Client } from '../support/client.ts'
import { statusOver, TIME } from '../support/matchers.ts'
import { firstTenant } from '../support/seeded-tenant.ts'
import { startUpstream } from '../support/upstream.ts'
import { callDefinition, connectAccount, LOCAL_UPSTREAM } from './calls.ts'

const {
  getIntegratedAccount: get,
  listIntegratedAccountHistory: history,
  updateIntegratedAccountCredentials: replace,
  refreshIntegratedAccountCredentials: refresh,
  runIntegratedAccountActions: runActions,
} = IntegratedAccountService.method
const { call } = ProxyService.method

const upstream = await startUpstream()
const app = await startTestApp(LOCAL_UPSTREAM)
const tenant = firstTenant(app)

afterAll(() => upstream[Symbol.asyncDispose]())
afterEach(() => upstream.verify())

const keyed = callDefinition(upstream.url)
const tokenised = {
  ...keyed,
  credentials: {
    oauth2_client_credentials: { config: { auth: { tokenHost: upstream.url, tokenPath: '/token' } } },
  },
  authorization: { format: 'bearer', config: { token: '{{oauth.token.access_token}}' } },
}

const connect = async (definition = keyed, fields = {}) =>
  (await connectAccount(app, tenant, definition, fields)).accountId

/** Does what the worker would: there is none in these tests. */
async function settle(id: string, cause: 'steps_passed' | 'validation_failed'): Promise<void> {
  const account = { environmentId: tenant.environmentId, id }
  await app.database.transaction((tx) => changeAccountStatus(tx, account, cause, cause))
}

describe.each(inTurn(app.clients()))('replacing credentials over $wire', (client) => {
  it('has the account connect anew, and shows no credential', async () => {
    const id = await connect()
    const answer = await client.ok(replace, { id, credentials: { api_key: 'k-456' } })

    expect(answer).toMatchObject({ id, status: 'connecting', context: {} })
    expect(JSON.stringify(answer)).not.toContain('k-456')
    expect(await client.ok(get, { id })).toEqual(answer)
    const [last] = (await client.ok(history, { id })).history_entries as readonly JsonObject[]
    expect(last).toMatchObject({ cause: 'reconnected', to_status: 'connecting' })
  })

  it('is what the next call uses', async () => {
    const id = await connect()
    await client.ok(replace, { id, credentials: { api_key: 'k-789' } })
    await settle(id, 'steps_passed')
    upstream.script({ request: 'GET /me', headers: { authorization: 'Bearer k-789' }, answer: { json: {} } })
    await client.ok(call, { integrated_account_id: id, resource: 'contacts', method: 'whoami' })
  })

  it.each([
    ['a field that there is not', { credentials: { password: 'x' } }, 'CREDENTIALS_INVALID'],
    ['a field of the wrong type', { credentials: { api_key: { a: 1 } } }, 'CREDENTIALS_INVALID'],
    ['the mask', { credentials: { api_key: '***' } }, 'SECRET_MASKED'],
    ['another version', { credentials: { api_key: 'x' }, etag: '"v9"' }, 'ETAG_MISMATCH'],
  ])('is rejected for %s, and changes nothing', async (_, change, reason) => {
    const id = await connect()
    const before = await client.ok(get, { id })
    expect((await client.callError(replace, { id, ...change })).reason).toBe(reason)
    expect(await client.ok(get, { id })).toEqual(before)
  })
})

describe.each(inTurn(app.clients()))('refreshing credentials over $wire', (client) => {
  const credentials = { client_id: 'id', client_secret: 'planted-secret' }
  const token = (answer: object) => ({ request: 'POST /token', answer })

  it('asks for a token, and shows none', async () => {
    const id = await connect(tokenised, { credentials })
    upstream.script(token({ json: { access_token: 'planted-token', expires_in: 3600 } }))
    const answer = await client.ok(refresh, { id })
    expect(answer.id).toBe(id)
    expect(JSON.stringify(answer)).not.toContain('planted')
  })

  it('is rejected for an account without a token', async () => {
    const rejection = await client.callError(refresh, { id: await connect() })
    expect(rejection).toMatchObject({ code: 'FAILED_PRECONDITION', reason: 'METHOD_NOT_DEFINED' })
  })

  it('says whether it was rejected or just not answered', async () => {
    const id = await connect(tokenised, { credentials })
    upstream.script(token({ status: 500, json: {} }))
    expect(await client.callError(refresh, { id })).toMatchObject({
      code: 'UNAVAILABLE',
      reason: 'TOKEN_REQUEST_FAILED',
    })
  })
})

describe.each(inTurn(app.clients()))('running the steps again over $wire', (client) => {
  it('has an account whose steps failed connect anew', async () => {
    const id = await connect()
    await client.ok(replace, { id, credentials: {} })
    await settle(id, 'validation_failed')
    expect(await client.ok(get, { id })).toMatchObject({ status: 'validation_error', last_error: 'validation_failed' })

    expect(await client.ok(runActions, { id })).toMatchObject({ id, status: 'connecting', last_error: '' })
  })

  it('is rejected in any other status', async () => {
    const id = await connect()
    expect(await client.callError(runActions, { id })).toMatchObject({
      code: 'FAILED_PRECONDITION',
      reason: 'ACCOUNT_STATUS_CONFLICT',
      metadata: { status: 'active' },
      httpStatus: statusOver(client, 400),
    })
  })
})

describe('a call', () => {
  const whoami = (client: Client, id: string) =>
    client.send(call, { integrated_account_id: id, resource: 'contacts', method: 'whoami' })
  const client = app.client('grpc')

  it('that is forbidden shows on the account, and nothing else of it changes', async () => {
    const id = await connect()
    const before = await client.ok(get, { id })
    expect(before).not.toHaveProperty('last_forbidden_error')
    upstream.script({ request: 'GET /me', answer: { status: 403, json: { message: 'not you' } } })
    await whoami(client, id)

    const last_forbidden_error = { resource: 'contacts', method: 'whoami', occurred_at: TIME }
    for (const each of app.clients()) expect(await each.ok(get, { id })).toEqual({ ...before, last_forbidden_error })
  })

  it('through an account that is being connected is rejected', async () => {
    const id = await connect()
    await client.ok(replace, { id, credentials: {} })
    expect(await whoami(client, id)).toMatchObject({
      error: { reason: 'ACCOUNT_NOT_ACTIVE', metadata: { status: 'connecting' } },
    })
  })

  it('that is unauthorized asks for the account to be connected again, and the next one that works heals it', async () => {
    const id = await connect()
    upstream.script({ request: 'GET /me', answer: { status: 401, json: {} } })
    await whoami(client, id)
    expect(await client.ok(get, { id })).toMatchObject({ status: 'needs_reauth' })

    upstream.script({ request: 'GET /me', answer: { json: { me: true } } })
    expect(await whoami(client, id)).toMatchObject({ ok: true })
    expect(await client.ok(get, { id })).toMatchObject({ status: 'active' })
  })
})
