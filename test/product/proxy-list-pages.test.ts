import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { toJson } from '@bufbuild/protobuf'
import { ValueSchema } from '@bufbuild/protobuf/wkt'
import { ConnectError, createClient, type Client as RpcClient, type Transport } from '@connectrpc/connect'
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from '@connectrpc/connect-node'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { ErrorInfoSchema } from '../../gen/google/rpc/error_details_pb.ts'
import { type ListPagesResponse, ProxyService } from '../../gen/patchbay/v1/proxy_service_pb.ts'
import { newId } from '../../src/foundation/base/index.ts'
import { startTestApp } from '../support/app.ts'
import { createApiEnvironment, firstTenant } from '../support/seeded-tenant.ts'
import { startUpstream } from '../support/upstream.ts'
import { callDefinition, connectAccount, LOCAL_UPSTREAM } from './calls.ts'

const upstream = await startUpstream()
const app = await startTestApp(LOCAL_UPSTREAM)
const tenant = firstTenant(app)
const { accountId } = await connectAccount(app, tenant, callDefinition(upstream.url))

afterAll(() => upstream[Symbol.asyncDispose]())
afterEach(() => upstream.verify())

const options = { baseUrl: app.url, httpVersion: '2' } as const
const transports: readonly { readonly wire: string; readonly transport: Transport }[] = [
  { wire: 'grpc', transport: createGrpcTransport({ baseUrl: app.url }) },
  { wire: 'grpc-web', transport: createGrpcWebTransport(options) },
  { wire: 'connect', transport: createConnectTransport(options) },
  { wire: 'connect, binary', transport: createConnectTransport({ ...options, useBinaryFormat: true }) },
]
const asked = { integratedAccountId: accountId, resource: 'contacts', method: 'list' }
const headers = { authorization: `Bearer ${tenant.environmentToken}` }

type Pages = RpcClient<typeof ProxyService>['listPages']

function listPages(transport: Transport): Pages {
  return createClient(ProxyService, transport).listPages
}

/** What a message says, its records as plain JSON. */
function plain({ step }: ListPagesResponse) {
  if (step.case === 'waiting') return { wait: step.value.seconds, page: step.value.pageNumber }
  if (step.case !== 'page') throw new Error('a message without a step')
  const { number, records, stopReason } = step.value
  return { page: number, records: records.map((record) => toJson(ValueSchema, record)), stopReason }
}

/** Everything a stream sends, and the reason for which it broke off. */
async function drain(stream: AsyncIterable<ListPagesResponse>) {
  const messages: ListPagesResponse[] = []
  try {
    for await (const message of stream) messages.push(message)
  } catch (error) {
    const [info] = ConnectError.from(error).findDetails(ErrorInfoSchema)
    return { messages, steps: messages.map(plain), reason: info?.reason ?? String(error), metadata: info?.metadata }
  }
  return { messages, steps: messages.map(plain), reason: undefined, metadata: undefined }
}

const page = (number: number, data: readonly number[]) => ({
  request: `GET /contacts?page=${number}&limit=2`,
  answer: { json: { data } },
})

describe.each(transports)('a walk through a list over $wire', ({ transport }) => {
  const list = listPages(transport)

  it('sends every page and says why it ended', async () => {
    upstream.script(page(1, [1, 2]), page(2, [3]), page(3, []))
    const { steps } = await drain(list(asked, { headers }))
    expect(steps).toEqual([
      { page: 1, records: [1, 2], stopReason: undefined },
      { page: 2, records: [3], stopReason: undefined },
      { page: 3, records: [], stopReason: 'empty_page' },
    ])
  })

  it('goes on after any page', async () => {
    upstream.script(page(1, [1, 2]), page(2, [3]), page(3, []), page(2, [3]), page(3, []))
    const { messages } = await drain(list(asked, { headers }))
    const [first] = messages
    const state = first?.step.case === 'page' ? first.step.value.state : undefined
    expect((await drain(list({ ...asked, state: state ?? {} }, { headers }))).steps.map(({ page }) => page)).toEqual([
      2, 3,
    ])
  })

  it('tells of a rate limit, waits, and goes on', async () => {
    const limited = { status: 429, json: {}, headers: { 'retry-after': '0.2' } }
    upstream.script(page(1, [1]), { request: 'GET /contacts?page=2&limit=2', answer: limited }, page(2, []))
    expect((await drain(list(asked, { headers }))).steps).toEqual([
      { page: 1, records: [1], stopReason: undefined },
      { wait: 0.2, page: 2 },
      { page: 2, records: [], stopReason: 'empty_page' },
    ])
  })

  it('does not wait beyond its deadline', async () => {
    const limited = { status: 429, json: {}, headers: { 'retry-after': '60' } }
    upstream.script(page(1, [1]), { request: 'GET /contacts?page=2&limit=2', answer: limited })
    const { steps, reason } = await drain(list(asked, { headers, timeoutMs: 10_000 }))
    expect([steps.length, reason]).toEqual([1, 'UPSTREAM_RATE_LIMITED'])
  })

  it('ends with what the third party refused', async () => {
    const refused = { status: 403, json: { message: 'no more' } }
    upstream.script(page(1, [1]), { request: 'GET /contacts?page=2&limit=2', answer: refused })
    const { steps, reason, metadata } = await drain(list(asked, { headers }))
    expect([steps.length, reason]).toEqual([1, 'UPSTREAM_ERROR'])
    expect(metadata).toEqual({
      log_id: expect.any(String),
      upstream_status: '403',
      upstream_request: 'GET /contacts',
      resource: 'contacts',
      method: 'list',
    })
  })

  it.each(['needs_reauth', 'retry', 'fail'])('tells what the definition expects of an error: %s', async (action) => {
    const fault = { status: 409, text: 'no', action }
    upstream.script({ request: 'GET /counted?page=1&limit=2', answer: { json: { fault } } })
    const { reason, metadata } = await drain(list({ ...asked, resource: 'counted' }, { headers }))
    const told = { log_id: expect.any(String), ...(action === 'fail' ? {} : { upstream_action: action }) }
    expect([reason, metadata]).toEqual([
      'UPSTREAM_ERROR',
      { upstream_status: '409', upstream_request: 'GET /counted', resource: 'counted', method: 'list', ...told },
    ])
  })

  it('takes a named action for one page', async () => {
    upstream.script({ request: 'POST /sign-off', answer: { json: { signed: true } } })
    const { steps } = await drain(list({ ...asked, resource: '_', method: 'sign_off' }, { headers }))
    expect(steps).toMatchObject([{ page: 1, records: [{ signed: true }] }])
  })

  it('tells how many records the third party claims', async () => {
    const total = 12_345_678_901
    upstream.script(
      { request: 'GET /counted?page=1&limit=2', answer: { json: { data: [1], total } } },
      { request: 'GET /counted?page=2&limit=2', answer: { json: { data: [] } } },
    )
    const { messages } = await drain(list({ ...asked, resource: 'counted' }, { headers }))
    expect(messages[0]?.step.value).toMatchObject({ total })
  })

  it('takes a method that is no list for one page', async () => {
    upstream.script({ request: 'GET /contacts/7', answer: { json: { id: 7 } } })
    const { steps } = await drain(list({ ...asked, method: 'get', id: '7' }, { headers }))
    expect(steps).toMatchObject([{ page: 1, records: [{ id: 7 }] }])
  })
})

describe.each(transports)('a walk that is rejected over $wire', ({ transport }) => {
  const list = listPages(transport)

  it('says why, before anything is sent', async () => {
    const elsewhere = await createApiEnvironment(app, tenant.teamToken)
    const foreign = { authorization: `Bearer ${elsewhere.environmentToken}` }
    const reasons = await Promise.all(
      [
        drain(list(asked, {})),
        drain(list(asked, { headers: foreign })),
        drain(list({ ...asked, integratedAccountId: newId() }, { headers })),
        drain(list({ ...asked, integratedAccountId: 'x' }, { headers })),
        drain(list({ ...asked, resource: 'nothing' }, { headers })),
        drain(list({ ...asked, state: { format: 'page' } }, { headers })),
      ].map(async (drained) => (await drained).reason),
    )
    expect(reasons).toEqual([
      'TOKEN_MISSING',
      'RESOURCE_NOT_FOUND',
      'RESOURCE_NOT_FOUND',
      'INVALID_FIELD',
      'METHOD_NOT_DEFINED',
      'PAGE_TOKEN_INVALID',
    ])
  })
})

/** A third party that answers as the test says, on a port of its own. */
async function startThirdParty(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const { accountId: integratedAccountId } = await connectAccount(
    app,
    tenant,
    callDefinition(`http://127.0.0.1:${port}`),
  )
  return {
    asked: { ...asked, integratedAccountId },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

describe.each(transports)('a client over $wire', ({ transport }) => {
  const list = listPages(transport)

  it('that reads slowly holds the third party back', async () => {
    let served = 0
    const record = 'x'.repeat(1_000_000)
    await using thirdParty = await startThirdParty((_, response) => {
      served += 1
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ data: served > 60 ? [] : [`${served}${record}`] }))
    })
    const stream = list(thirdParty.asked, { headers })[Symbol.asyncIterator]()
    await stream.next()
    const bystander = app.client('rest')
    for (let calls = 0; calls < 100; calls += 1) await bystander.send(ProxyService.method.call, {})
    expect(served).toBeLessThan(30)
    await stream.return?.()
  })

  it('that goes away ends the call under way', async () => {
    const { promise: ended, resolve } = Promise.withResolvers<void>()
    await using thirdParty = await startThirdParty((request, response) => {
      if (request.url?.includes('page=1')) response.setHeader('content-type', 'application/json').end('{"data":[1]}')
      else response.once('close', resolve)
    })
    const controller = new AbortController()
    const stream = list(thirdParty.asked, { headers, signal: controller.signal })[Symbol.asyncIterator]()
    await stream.next()
    const next = stream.next().catch(() => 'cancelled')
    controller.abort()
    expect(await next).toBe('cancelled')
    await ended
  })
})
