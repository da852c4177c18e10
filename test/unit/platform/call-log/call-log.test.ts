import { createClient } from '@connectrpc/connect'
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from '@connectrpc/connect-node'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { CallLogService } from '../../../../gen/patchbay/v1/call_log_service_pb.ts'
import { IntegratedAccountService } from '../../../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { ProxyService } from '../../../../gen/patchbay/v1/proxy_service_pb.ts'
import { newId } from '../../../../src/foundation/base/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { callDefinition, connectAccount, LOCAL_UPSTREAM } from '../../../product/calls.ts'
import { startTestApp } from '../../../support/app.ts'
import { createApiTenant, firstTenant } from '../../../support/seeded-tenant.ts'
import { startUpstream } from '../../../support/upstream.ts'

const upstream = await startUpstream()
const app = await startTestApp({ ...LOCAL_UPSTREAM, PATCHBAY_CALL_LOG_SAMPLE: '0' })
const tenant = firstTenant(app)
const { accountId, environmentIntegrationId } = await connectAccount(app, tenant, callDefinition(upstream.url))
const { getCallLogEntry, listCallLogEntries } = CallLogService.method

afterAll(() => upstream[Symbol.asyncDispose]())
afterEach(() => upstream.verify())

const get = (path: string, headers: Readonly<Record<string, string>> = {}) =>
  fetch(`${app.url}${path}`, { headers: { authorization: `Bearer ${app.first.environmentToken}`, ...headers } })

describe.each(app.clients())('the request log over $wire', (client) => {
  const entriesOf = async (filter: JsonObject) =>
    ((await client.ok(listCallLogEntries, filter)).call_log_entries ?? []) as JsonObject[]

  it('has an entry for each attempt, named by answer and error', async () => {
    const requestId = newId()
    upstream.script(
      {
        request: 'GET /contacts/7',
        answer: { status: 503, headers: { 'x-request-id': 'theirs-1' }, json: { why: 'k-123' } },
      },
      { request: 'GET /contacts/7', answer: { json: { id: 7 } } },
    )
    const answer = await get(`/proxy/contacts/7?integrated_account_id=${accountId}`, { 'x-request-id': requestId })
    expect(answer.status).toBe(200)

    const entries = await entriesOf({ cause_id: requestId })
    expect(entries).toMatchObject([
      {
        id: answer.headers.get('patchbay-log-id'),
        integrated_account_id: accountId,
        environment_integration_id: environmentIntegrationId,
        resource: 'contacts',
        method: 'get',
        http_method: 'GET',
        url: `${upstream.url}/contacts/7`,
        status: 200,
        class: 'success',
        attempt: 2,
        cause: 'call',
        request_id: requestId,
        has_content: false,
      },
      { status: 503, class: 'error', attempt: 1, upstream_request_id: 'theirs-1', has_content: true },
    ])
    const failed = await client.ok(getCallLogEntry, { id: entries[1]?.id ?? '' })
    expect(failed.content).toMatchObject({
      request_headers: expect.arrayContaining([{ name: 'authorization', value: '***' }]),
      response_body: '{"why":"***"}',
    })
  })

  it('is named by the errors of calls, also of those that were not answered', async () => {
    upstream.script({ request: 'POST /contacts', answer: { hangUp: true } })
    const call = { integrated_account_id: accountId, resource: 'contacts', method: 'create', body: {} }
    const error = await client.callError(ProxyService.method.call, call)
    const id = String(error.metadata.log_id)
    expect(await client.ok(getCallLogEntry, { id })).toMatchObject({ class: 'network_error', http_method: 'POST' })
  })

  it('shows an environment its own entries alone', async () => {
    upstream.script({ request: 'GET /contacts/8', answer: { json: {} } })
    const answer = await get(`/proxy/contacts/8?integrated_account_id=${accountId}`)
    const id = answer.headers.get('patchbay-log-id') ?? ''
    expect(await client.ok(getCallLogEntry, { id })).toMatchObject({ id, class: 'success' })
    const error = await client.callError(getCallLogEntry, { id: newId() })
    expect(error.reason).toBe('RESOURCE_NOT_FOUND')
  })
})

describe.each([
  ['gRPC', createGrpcTransport({ baseUrl: app.url })],
  ['gRPC-Web', createGrpcWebTransport({ baseUrl: app.url, httpVersion: '1.1' })],
  ['Connect', createConnectTransport({ baseUrl: app.url, httpVersion: '1.1' })],
])('the request log, followed over %s', (_, transport) => {
  it('has each entry that fits once it is stored, and none of another environment', async () => {
    const other = await createApiTenant(app)
    const foreign = await connectAccount(app, other, callDefinition(upstream.url))
    const headers = { authorization: `Bearer ${app.first.environmentToken}` }
    const request = { integratedAccountId: accountId, class: 'error' }
    const watch = createClient(CallLogService, transport).watchCallLogEntries(request, { headers })
    const messages = watch[Symbol.asyncIterator]()
    // The first message says that the watch has begun.
    expect((await messages.next()).value?.callLogEntry).toBeUndefined()
    upstream.script(
      { request: 'GET /contacts/1', answer: { json: {} } },
      { request: 'GET /contacts/2', answer: { status: 404, json: {} }, times: 2 },
    )
    await get(`/proxy/contacts/1?integrated_account_id=${accountId}`)
    const authorization = `Bearer ${other.environmentToken}`
    await get(`/proxy/contacts/2?integrated_account_id=${foreign.accountId}`, { authorization })
    const answer = await get(`/proxy/contacts/2?integrated_account_id=${accountId}`)
    const id = answer.headers.get('patchbay-log-id')
    expect((await messages.next()).value?.callLogEntry).toMatchObject({ id, class: 'error', status: 404 })
    await messages.return?.()
  })
})

describe('the cause of a request', () => {
  let tokenAccountId = ''
  it('is the activation of an account, and the tokens that it takes', async () => {
    app.startWorker()
    upstream.script(
      { request: 'POST /token', answer: { json: { access_token: 'fresh-access-token', token_type: 'bearer' } } },
      { request: 'GET /check', answer: { json: { ok: true } } },
    )
    const { accountId: id } = await connectAccount(
      app,
      tenant,
      {
        base_url: upstream.url,
        authorization: { format: 'bearer' },
        credentials: {
          format: 'oauth2_client_credentials',
          config: { auth: { tokenHost: upstream.url, tokenPath: '/token' } },
        },
        actions: { validation: { type: 'request', config: { method: 'GET', path: '/check' } } },
        resources: { contacts: { get: { path: '/contacts/{{id}}' } } },
      },
      { credentials: { client_id: 'app', client_secret: 'the-clients-secret' } },
    )
    tokenAccountId = id
    const client = app.client('rest')
    const entriesNow = async () => (await client.ok(listCallLogEntries, { integrated_account_id: id })).call_log_entries
    await expect.poll(entriesNow).toMatchObject([
      { cause: 'activation', cause_id: id, class: 'success', url: `${upstream.url}/check` },
      { cause: 'token', cause_id: id, class: 'success', url: `${upstream.url}/token` },
    ])
    for (const entry of (await entriesNow()) as JsonObject[]) expect(entry).not.toHaveProperty('request_id')
  })
  it('does not hide the request that led to it: a token has that of the call that needed it', async () => {
    const { getIntegratedAccount } = IntegratedAccountService.method
    const account = () => app.client('rest').ok(getIntegratedAccount, { id: tokenAccountId })
    await expect.poll(account).toMatchObject({ status: 'active' })
    const requestId = newId()
    upstream.script(
      { request: 'GET /contacts/1', answer: { status: 401, json: {} } },
      { request: 'POST /token', answer: { json: { access_token: 'second-access-token', token_type: 'bearer' } } },
      { request: 'GET /contacts/1', answer: { json: { id: 1 } } },
    )
    const answer = await get(`/proxy/contacts/1?integrated_account_id=${tokenAccountId}`, { 'x-request-id': requestId })
    expect(answer.status).toBe(200)
    const { call_log_entries: entries } = await app
      .client('rest')
      .ok(listCallLogEntries, { integrated_account_id: tokenAccountId, page_size: 3 })
    expect(entries).toMatchObject([
      { cause: 'call', request_id: requestId, status: 200 },
      { cause: 'token', request_id: requestId, cause_id: tokenAccountId },
      { cause: 'call', request_id: requestId, status: 401 },
    ])
  })
})
