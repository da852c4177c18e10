import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { CallLogService } from '../../gen/patchbay/v1/call_log_service_pb.ts'
import { IntegratedAccountService } from '../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { ProxyService } from '../../gen/patchbay/v1/proxy_service_pb.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { firstTenant } from '../support/seeded-tenant.ts'
import { startUpstream } from '../support/upstream.ts'
import { callDefinition, connectAccount, LOCAL_UPSTREAM } from './calls.ts'

const upstream = await startUpstream()
const app = await startTestApp(LOCAL_UPSTREAM)
app.startWorker()
const tenant = firstTenant(app)
const client = app.client('connect')
const { accountId } = await connectAccount(app, tenant, callDefinition(upstream.url))
const { getIntegratedAccount } = IntegratedAccountService.method

afterAll(() => upstream[Symbol.asyncDispose]())
afterEach(() => upstream.verify())

const entryOf = (id: unknown) => client.ok(CallLogService.method.getCallLogEntry, { id: String(id) })

/** An account whose tokens come of its own client id and secret. */
const withClientCredentials = (actions: JsonObject = {}): Promise<{ readonly accountId: string }> =>
  connectAccount(
    app,
    tenant,
    {
      base_url: upstream.url,
      authorization: { format: 'bearer' },
      credentials: {
        format: 'oauth2_client_credentials',
        config: { auth: { tokenHost: upstream.url, tokenPath: '/token' } },
      },
      actions,
      resources: { contacts: { get: { method: 'GET', path: '/contacts/{{id}}' } } },
    },
    { credentials: { client_id: 'app', client_secret: 'the-clients-secret' } },
  )

/** The account once its activation has ended with the status. */
async function endedAs(id: string, status: string) {
  await expect.poll(() => client.ok(getIntegratedAccount, { id })).toMatchObject({ status })
  return await client.ok(getIntegratedAccount, { id })
}

describe('the entry of the request log that an error names', () => {
  it('is the request that was limited', async () => {
    upstream.script({
      request: 'GET /contacts/1',
      answer: { status: 429, headers: { 'retry-after': '900' }, json: {} },
    })
    const call = { integrated_account_id: accountId, resource: 'contacts', method: 'get', id: '1' }
    const { reason, metadata } = await client.callError(ProxyService.method.call, call)
    expect(reason).toBe('UPSTREAM_RATE_LIMITED')
    expect(await entryOf(metadata.log_id)).toMatchObject({ class: 'rate_limited', status: 429 })
  })

  it('has the answer of a streamed call', async () => {
    upstream.script({ request: 'GET /broken', answer: { status: 422, json: { why: 'no such shard' } } })
    const answer = await fetch(`${app.url}/custom/broken?integrated_account_id=${accountId}`, {
      headers: { authorization: `Bearer ${app.first.environmentToken}` },
    })
    const entry = await entryOf(answer.headers.get('patchbay-log-id'))
    expect(entry).toMatchObject({ class: 'error', content: { response_body: '{"why":"no such shard"}' } })
  })

  it('is the request for a token that was rejected, in the steps of the activation and in later calls', async () => {
    upstream.script({ request: 'POST /token', answer: { status: 401, json: { error: 'invalid_client' } }, times: 1 })
    const { accountId: id } = await withClientCredentials()
    const account = await endedAs(id, 'validation_error')
    const { validation } = account.last_action_result as { validation: readonly JsonObject[] }
    expect(validation).toMatchObject([{ name: 'token', ok: false, log_id: expect.any(String) }])
    expect(await entryOf(validation[0]?.log_id)).toMatchObject({ cause: 'token', status: 401, class: 'error' })
  })

  it('is the request of the step that failed', async () => {
    upstream.script(
      { request: 'POST /token', answer: { json: { access_token: 'fresh-access-token', token_type: 'bearer' } } },
      { request: 'GET /check', answer: { status: 403, json: { why: 'not allowed' } } },
    )
    const { accountId: id } = await withClientCredentials({
      validation: { type: 'request', config: { method: 'GET', path: '/check' } },
    })
    const account = await endedAs(id, 'validation_error')
    const { validation } = account.last_action_result as { validation: readonly JsonObject[] }
    expect(await entryOf(validation[0]?.log_id)).toMatchObject({
      cause: 'activation',
      status: 403,
      content: { response_body: '{"why":"not allowed"}' },
    })
  })
})
