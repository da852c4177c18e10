import { toJson } from '@bufbuild/protobuf'
import { timestampFromDate, ValueSchema } from '@bufbuild/protobuf/wkt'
import { ConnectError, createClient, type Transport } from '@connectrpc/connect'
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { ErrorInfoSchema } from '../../gen/google/rpc/error_details_pb.ts'
import { UnifiedService, type UnifiedServiceListPagesResponse } from '../../gen/patchbay/v1/unified_service_pb.ts'
import { startTestApp } from '../support/app.ts'
import { firstTenant } from '../support/seeded-tenant.ts'
import { startUpstream } from '../support/upstream.ts'
import { LOCAL_UPSTREAM } from './calls.ts'
import { connectMapped, contact } from './unified.ts'

const upstream = await startUpstream()
const app = await startTestApp(LOCAL_UPSTREAM)
const tenant = firstTenant(app)
const { accountId } = await connectMapped(app, tenant, upstream.url)

afterAll(() => upstream[Symbol.asyncDispose]())
afterEach(() => upstream.verify())

const transports: readonly { readonly wire: string; readonly transport: Transport }[] = [
  { wire: 'grpc', transport: createGrpcTransport({ baseUrl: app.url }) },
  { wire: 'connect', transport: createConnectTransport({ baseUrl: app.url, httpVersion: '2' }) },
]
const asked = { integratedAccountId: accountId, model: 'crm', resource: 'contacts' }
const headers = { authorization: `Bearer ${tenant.environmentToken}` }

/** What a message says: the ids of a page, or a wait. */
function plain({ step }: UnifiedServiceListPagesResponse) {
  if (step.case === 'waiting') return { wait: step.value.seconds }
  if (step.case !== 'page') throw new Error('a message without a step')
  const { number, records, stopReason } = step.value
  const ids = records.map((record) => (toJson(ValueSchema, record) as { id: string }).id)
  return { page: number, ids, ...(stopReason === undefined ? {} : { stopReason }) }
}

async function drain(stream: AsyncIterable<UnifiedServiceListPagesResponse>) {
  const messages: UnifiedServiceListPagesResponse[] = []
  try {
    for await (const message of stream) messages.push(message)
  } catch (error) {
    const [info] = ConnectError.from(error).findDetails(ErrorInfoSchema)
    return { messages, steps: messages.map(plain), reason: info?.reason ?? String(error), metadata: info?.metadata }
  }
  return { messages, steps: messages.map(plain), reason: undefined, metadata: undefined }
}

const page = (number: number, ids: readonly number[], query = '') => ({
  request: `GET /contacts?${query}page=${number}&limit=2`,
  answer: { json: { data: ids.map((id) => contact(id)) } },
})

describe.each(transports)('the pages of a unified list over $wire', ({ transport }) => {
  const { listPages } = createClient(UnifiedService, transport)

  it('are sent to the end, mapped, through a rate limit', async () => {
    const limited = { status: 429, json: {}, headers: { 'retry-after': '0.2' } }
    const second = { request: 'GET /contacts?page=2&limit=2', answer: limited }
    upstream.script(page(1, [1, 2]), second, page(2, [3]), page(3, []))
    expect((await drain(listPages(asked, { headers }))).steps).toEqual([
      { page: 1, ids: ['1', '2'] },
      { wait: 0.2 },
      { page: 2, ids: ['3'] },
      { page: 3, ids: [], stopReason: 'empty_page' },
    ])
  })

  it('continue after any of them, also as text, with the numbers of the third party', async () => {
    const large = {
      request: 'GET /contacts?page=2&limit=2',
      answer: { headers: { 'content-type': 'application/json' }, text: exact({ ...contact(3), score: 1 }) },
    }
    upstream.script(page(1, [1, 2]), large, page(3, []), large, page(3, []))
    const [first] = (await drain(listPages({ ...asked, asJsonText: true }, { headers }))).messages
    const state = first?.step.case === 'page' ? first.step.value.stateJson : ''
    const rest = listPages({ ...asked, asJsonText: true, valuesJson: `{"state":${state}}` }, { headers })
    const [next] = (await drain(rest)).messages
    const text = next?.step.case === 'page' ? next.step.value.recordsJson : ''
    expect(text).toContain('"score":12345678901234567890')
  })

  it('are asked for since the date of the last run, where the mapping can', async () => {
    const since = encodeURIComponent('2026-01-02T00:00:00.000Z')
    upstream.script(page(1, [], `since=${since}&`), page(1, [], 'since=2025-01-01&'))
    const previousRunDate = timestampFromDate(new Date('2026-01-02T00:00:00Z'))
    await drain(listPages({ ...asked, previousRunDate }, { headers }))
    await drain(listPages({ ...asked, previousRunDate, query: { updated_at: { gt: '2025-01-01' } } }, { headers }))
  })

  it('say which filters were not passed on', async () => {
    upstream.script(page(1, []))
    const { messages } = await drain(listPages({ ...asked, query: { first_name: 'Ada' } }, { headers }))
    expect(messages[0]?.ignoredFilters).toMatchObject([{ field: 'first_name', op: 'eq', reason: 'not_supported' }])
  })

  it('end with the error of the third party', async () => {
    upstream.script(page(1, [1, 2]), {
      request: 'GET /contacts?page=2&limit=2',
      answer: { status: 403, json: { message: 'no more' } },
    })
    const { steps, reason, metadata } = await drain(listPages(asked, { headers }))
    expect([steps.length, reason, metadata]).toEqual([
      1,
      'UPSTREAM_ERROR',
      {
        log_id: expect.any(String),
        upstream_status: '403',
        upstream_request: 'GET /contacts',
        model: 'crm',
        resource: 'contacts',
        method: 'list',
      },
    ])
  })

  it.each([
    ['no query', { query: { updated_at: { after: 'x' } } }, 'INVALID_FIELD'],
    ['no text of an object', { valuesJson: '[]' }, 'INVALID_FIELD'],
    ['an unknown value', { valuesJson: '{"args":{}}' }, 'INVALID_FIELD'],
    ['a value given twice', { query: {}, valuesJson: '{"query":{}}' }, 'INVALID_FIELD'],
    ['a strict filter', { query: { first_name: 'Ada', strict_filters: true } }, 'INVALID_FIELD'],
    ['an unknown resource', { resource: 'contact' }, 'UNIFIED_NOT_MAPPED'],
    ['a state of another paging', { state: { format: 'cursor' } }, 'PAGE_TOKEN_INVALID'],
  ])('are rejected for %s, and nothing is sent', async (_, given, reason) => {
    expect((await drain(listPages({ ...asked, ...given }, { headers }))).reason).toBe(reason)
    expect(upstream.requests).toEqual([])
  })
})

/** The records with a number that a double would change. */
function exact(record: object): string {
  return JSON.stringify({ data: [record] }).replace('"score":1', '"score":12345678901234567890')
}
