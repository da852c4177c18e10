import type { DescService } from '@bufbuild/protobuf'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { compileOperations, defineService } from '../../../../src/server/api/operation.ts'
import { createRestRouter } from '../../../../src/server/api/rest/rest.ts'
import { UnservedService } from './support/contract.ts'
import { type Harness, startHarness, WIDGET_ID } from './support/harness.ts'
import { AS_ENVIRONMENT, type HttpAnswer, http1, http2, JSON_BODY } from './support/http.ts'

let harness: Harness

beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness[Symbol.asyncDispose]())

const send = (method: string, path: string, body?: string, headers: Record<string, string> = JSON_BODY) =>
  http1(harness.baseUrl, path, { method, headers, ...(body === undefined ? {} : { body }) })

/** The request as the handler saw it. */
const seen = ({ json }: HttpAnswer) => json.request

describe('a request', () => {
  it.each([
    ['query parameters', '/widget?page_size=7&is_on=true', { page_size: 7, is_on: true }],
    ['camel-case query parameters', '/widget?pageSize=7&isOn=false', { page_size: 7, is_on: false }],
    ['repeated query parameters', '/widget?tags=a&tags=b%20c', { tags: ['a', 'b c'] }],
    ['a dotted query parameter', '/widget?page.size=7&is.on=true', { page_size: 7, is_on: true }],
    ['nested query parameters', '/widget?part.name=x&part.count=3', { part: { name: 'x', count: 3 } }],
    ['a time in the query', '/widget?made_after=2027-01-15T08:00:00Z', { made_after: '2027-01-15T08:00:00Z' }],
    ['a field mask in the query', '/widget?read_mask=name,is_on', { read_mask: 'name,isOn' }],
    ['an empty query', '/widget?', {}],
    ['a percent-encoded variable', '/find/a%20b%2Fc', { name: 'a b/c' }],
    ['a variable beside query parameters', '/find/a?limit=4&part.name=b', { name: 'a', limit: 4, part: { name: 'b' } }],
  ])('is read from %s', async (_, path, request) => {
    const answer = await send('GET', path)
    expect(answer.status).toBe(200)
    expect(seen(answer)).toEqual(request)
  })

  it.each([
    ['whole', 'POST', '/widget', '{"name":"a","parts":[{"name":"p"}]}', { name: 'a', parts: [{ name: 'p' }] }],
    ['beside a variable', 'PATCH', `/widget/${WIDGET_ID}`, '{"name":"a"}', { id: WIDGET_ID, name: 'a' }],
    [
      'as a message inside',
      'PUT',
      `/widget/${WIDGET_ID}/part`,
      '{"part":{"name":"p"}}',
      { id: WIDGET_ID, part: { name: 'p' } },
    ],
    ['absent', 'PATCH', `/widget/${WIDGET_ID}`, undefined, { id: WIDGET_ID }],
    ['before a literal', 'POST', `/widget/${WIDGET_ID}/archive`, '{}', { id: WIDGET_ID }],
    ['at a word where others have a variable', 'POST', '/widget/preview', '{"name":"a"}', { name: 'a' }],
  ])('is read from its body: %s', async (_, method, path, body, request) => {
    const answer = await send(method, path, body)
    expect(answer.status).toBe(200)
    expect(seen(answer)).toEqual(request)
  })

  it('may repeat in its body what its path says, but not contradict it', async () => {
    expect((await send('PATCH', `/widget/${WIDGET_ID}`, `{"id":"${WIDGET_ID}"}`)).status).toBe(200)
    const other = await send('PATCH', `/widget/${WIDGET_ID}`, '{"id":"other"}')
    expect(violations(other)).toEqual(['id path_conflict'])
  })

  it('is the same over HTTP/2', async () => {
    const answer = await http2(harness.baseUrl, `/widget/${WIDGET_ID}`, {
      method: 'PATCH',
      headers: JSON_BODY,
      body: '{"name":"a"}',
    })
    expect(answer.status).toBe(200)
    expect(seen(answer)).toEqual({ id: WIDGET_ID, name: 'a' })
  })
})

describe('headers', () => {
  it.each([
    ['If-Match', 'PATCH', `/widget/${WIDGET_ID}`, '{}', { 'if-match': '"v7"' }, { id: WIDGET_ID, etag: 'v7' }],
    ['a weak If-Match', 'PATCH', `/widget/${WIDGET_ID}`, '{}', { 'if-match': 'W/"v7"' }, { id: WIDGET_ID, etag: 'v7' }],
    ['If-Match: *', 'PATCH', `/widget/${WIDGET_ID}`, '{}', { 'if-match': '*' }, { id: WIDGET_ID }],
    [
      'If-Match beside an etag in the body',
      'PATCH',
      `/widget/${WIDGET_ID}`,
      '{"etag":"v1"}',
      { 'if-match': '"v7"' },
      { id: WIDGET_ID, etag: 'v1' },
    ],
    [
      'Idempotency-Key',
      'POST',
      '/widget',
      '{"name":"a"}',
      { 'idempotency-key': WIDGET_ID },
      { name: 'a', request_id: WIDGET_ID },
    ],
    ['Idempotency-Key where nothing takes it', 'GET', '/find/a', undefined, { 'idempotency-key': WIDGET_ID }, null],
  ])('fill fields that the body leaves open: %s', async (_, method, path, body, headers, request) => {
    const answer = await send(method, path, body, { ...JSON_BODY, ...headers })
    expect(answer.status).toBe(200)
    expect(seen(answer)).toEqual(request ?? { name: 'a' })
  })

  it('say the etag of what they answer', async () => {
    expect((await send('GET', `/widget/${WIDGET_ID}`)).headers.get('etag')).toBe('"v1"')
    expect((await send('GET', '/widget')).headers.has('etag')).toBe(false)
  })
})

describe('transcoding', () => {
  const TIME = '2027-01-15T08:00:00Z'

  it.each([
    ['system parameters', '/widget?$alt=json;enum-encoding=int&$prettyPrint=1&$fields=name&$.xgafv=2', {}],
    ['an enum by its name', '/transcode?color=COLOR_RED', { color: 'COLOR_RED' }],
    ['an enum by its number', '/transcode?color=2', { color: 'COLOR_BLUE' }],
    ['a list of enums', '/transcode?colors=1&colors=COLOR_BLUE', { colors: ['COLOR_RED', 'COLOR_BLUE'] }],
    ['wrappers', '/transcode?flag=true&number=5&text=true', { flag: true, number: 5, text: 'true' }],
    [
      'two spellings of one parent',
      '/transcode?more_info.page_size=1&moreInfo.name=x',
      {
        more_info: { page_size: 1, name: 'x' },
      },
    ],
    ['a list in both spellings', '/transcode?tag_names=a&tagNames=b', { tag_names: ['a', 'b'] }],
    ['a free-form object', '/transcode?attributes=%7B%22a%22:%5B1%5D%7D', { attributes: { a: [1] } }],
    ['any JSON value', '/transcode?anything=%5B1,%22x%22%5D', { anything: [1, 'x'] }],
    [
      'nested fields beside top-level fields of their names',
      `/transcode?info.page_size=3&info.made_at=${TIME}&pageSize=7&madeAt=${TIME}`,
      {
        page_size: 7,
        made_at: TIME,
        info: { page_size: 3, made_at: TIME },
      },
    ],
  ])('reads %s', async (_, path, request) => {
    const answer = await send('GET', path)
    expect([answer.status, seen(answer)]).toEqual([200, request])
  })

  it('names a field to use where an object was given as text', async () => {
    const answer = await send('GET', '/widget?part=1')
    expect(answer.text).toContain('name one of its fields, as in part.name')
  })
})

describe('a rule of google.api.http that is not served', () => {
  it.each([
    ['AdditionalBindings', 'additional_bindings'],
    ['FieldAsBody', 'its body is one field'],
    ['ResponseBody', 'response_body'],
    ['AnyVerb', 'none of the verbs'],
    ['VariableOfUnknownField', 'unknown is no field'],
    ['VariableOfMessage', 'inner is no field that a path can hold'],
    ['NestedVariable', '"{inner.name}" is neither a literal nor one field'],
  ])('is an error when the server starts: %s', (name, message) => {
    const method = UnservedService.methods.find((candidate) => candidate.name === name)
    if (method?.methodKind !== 'unary') throw new Error(name)
    const service = { ...UnservedService, methods: [method] } as DescService
    const implementation = { [method.localName]: async () => ({}) } as never
    const operations = compileOperations([defineService(service, implementation)])
    expect(() => createRestRouter(operations.values())).toThrow(message)
  })
})

describe('a request is rejected', () => {
  it.each([
    ['an unknown query parameter', 'GET', '/widget?pagesize=7', ['pagesize unknown_parameter']],
    ['a query parameter given twice', 'GET', '/widget?page_size=7&page_size=8', ['page_size duplicate_parameter']],
    [
      'a query parameter given in two spellings',
      'GET',
      '/widget?page_size=7&page.size=7',
      ['page_size duplicate_parameter'],
    ],
    ['a query parameter of the wrong type', 'GET', '/widget?is_on=yes&page_size=x', ['is_on type', 'page_size type']],
    ['a query parameter that breaks a rule', 'GET', '/widget?page_size=-1', ['page_size int32.gte']],
    ['JSON of another type as a query parameter', 'GET', '/widget?attributes=1', ['attributes type']],
    ['a free-form parameter that is not JSON', 'GET', '/widget?attributes={', ['attributes type']],
    ['a message as a query parameter', 'GET', '/widget?part=1', ['part unknown_parameter']],
    ['a path variable in the query too', 'GET', `/widget/${WIDGET_ID}?id=1`, ['id unknown_parameter']],
    ['a query beside a body that is the request', 'POST', '/widget?name=a', ['name unknown_parameter']],
    ['a malformed id in the path', 'GET', '/widget/nonsense', ['id string.uuid']],
    ['broken percent-encoding in the path', 'GET', '/find/%zz', ['name percent_encoding']],
    ['bytes in the query that are not UTF-8', 'GET', '/find/a?limit=%ff', ['limit percent_encoding']],
    ['a lone percent sign in the query', 'GET', '/find/a?limit=1%', ['limit percent_encoding']],
    ['a name in the query that is not UTF-8', 'GET', '/find/a?%c3=1', ['%c3 percent_encoding']],
    ['a map as a query parameter', 'GET', '/transcode?labels=a', ['labels unknown_parameter']],
    ['one field in both spellings', 'GET', '/widget?page_size=7&pageSize=8', ['page_size duplicate_parameter']],
    ['a wrapper of the wrong type', 'GET', '/transcode?flag=yes', ['flag type']],
    ['an unknown enum value', 'GET', '/transcode?color=COLOR_GREEN', ['color type']],
    ['a text variable in the query too', 'GET', '/find/a?name=b', ['name unknown_parameter']],
    ['system parameters beside an unknown one', 'GET', '/widget?$alt=json&alt=json', ['alt unknown_parameter']],
  ])('with every violation for %s', async (_, method, path, expected) => {
    const answer = await send(method, path, method === 'GET' ? undefined : '{}')
    expect(answer.status).toBe(400)
    expect(violations(answer)).toEqual(expected)
  })

  it.each([
    ['limit', 'page_size'],
    ['per_page', 'page_size'],
  ])('with what lists call %s here', async (given, meant) => {
    const answer = await send('GET', `/widget?${given}=7`)
    expect(JSON.stringify(answer.json)).toContain(`is not a known query parameter, did you mean ${meant}?`)
  })

  it.each([
    ['an unknown path', 'GET', '/nothing', 404, 'ROUTE_NOT_FOUND'],
    ['a trailing slash', 'GET', '/widget/', 404, 'ROUTE_NOT_FOUND'],
    ['a verb the path does not know', 'DELETE', '/widget', 405, 'METHOD_NOT_ALLOWED'],
    ['a verb behind a colon', 'POST', `/widget/${WIDGET_ID}:burn`, 405, 'METHOD_NOT_ALLOWED'],
    ['a GET on an RPC with side effects', 'GET', '/widget.v1.WidgetService/Create', 405, 'METHOD_NOT_ALLOWED'],
  ])('for %s', async (_, method, path, status, reason) => {
    const answer = await send(method, path)
    expect(answer.status).toBe(status)
    expect(reasonOf(answer)).toBe(reason)
  })

  it.each([
    ['JSON that is none', '{"name":', 400, 'MALFORMED_BODY'],
    ['a body that is no object', '[]', 400, 'MALFORMED_BODY'],
    ['a key given twice', '{"name":"a","name":"b"}', 400, 'MALFORMED_BODY'],
    ['a key given twice inside', '{"name":"a","attributes":{"x":[{"y":1,"y":1}]}}', 400, 'MALFORMED_BODY'],
    ['a bomb of brackets', '['.repeat(40_000), 400, 'MALFORMED_BODY'],
    ['more values than the limit', '['.repeat(1_000_000), 413, 'REQUEST_TOO_LARGE'],
    ['a bomb of objects', `${'{"a":'.repeat(200)}1${'}'.repeat(200)}`, 400, 'MALFORMED_BODY'],
    ['bytes that are not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]), 400, 'MALFORMED_BODY'],
    ['more than the limit', `{"name":"${'x'.repeat(4 * 1024 * 1024)}"}`, 413, 'REQUEST_TOO_LARGE'],
  ])('for %s', async (_, body, status, reason) => {
    const answer = await http1(harness.baseUrl, '/widget', { method: 'POST', headers: JSON_BODY, body })
    expect(answer.status).toBe(status)
    expect(reasonOf(answer)).toBe(reason)
  })

  it.each(['text/plain', 'application/x-www-form-urlencoded', 'application/json; charset=latin1', 'application/jsonx'])(
    'for the content type %s',
    async (contentType) => {
      const answer = await send('POST', '/widget', '{"name":"a"}', { ...AS_ENVIRONMENT, 'content-type': contentType })
      expect(answer.status).toBe(415)
      expect(reasonOf(answer)).toBe('UNSUPPORTED_MEDIA_TYPE')
    },
  )

  it('for a body where there should be none', async () => {
    expect((await send('DELETE', `/widget/${WIDGET_ID}`, '{}')).status).toBe(200)
    const answer = await send('DELETE', `/widget/${WIDGET_ID}`, '{"force":true}')
    expect(reasonOf(answer)).toBe('MALFORMED_BODY')
  })
})

describe('the words of a violation', () => {
  it.each([
    ['GET', '/widget?page_size=x', undefined, 'page_size must be an integer from 0 to 2147483647'],
    ['GET', '/find/a?limit=x', undefined, 'limit must be an integer from -2147483648 to 2147483647'],
    ['POST', '/widget', '{"name":""}', 'name must not be empty'],
    ['POST', '/widget', '{"name":"a","parts":[{"name":"p","count":"x"}]}', 'parts[0].count must be an integer from 0'],
  ])('say what is taken: %s %s', async (method, path, body, words) => {
    const { error } = (await send(method, path, body)).json as unknown as { error: { message: string } }
    expect(error.message).toContain(words)
  })
})

describe('verbs', () => {
  it('HEAD answers like GET, without the body', async () => {
    const [get, head] = [await send('GET', `/widget/${WIDGET_ID}`), await send('HEAD', `/widget/${WIDGET_ID}`)]
    expect(head.status).toBe(200)
    expect(head.text).toBe('')
    expect(head.headers.get('content-length')).toBe(get.headers.get('content-length'))
    const overHttp2 = await http2(harness.baseUrl, `/widget/${WIDGET_ID}`, { method: 'HEAD' })
    expect(overHttp2.text).toBe('')
  })

  it('OPTIONS lists what a path takes', async () => {
    const answer = await send('OPTIONS', `/widget/${WIDGET_ID}`)
    expect(answer.status).toBe(204)
    expect(answer.headers.get('allow')).toBe('DELETE, GET, HEAD, OPTIONS, PATCH')
  })

  it('405 lists it too', async () => {
    const answer = await send('PUT', '/widget')
    expect(answer.headers.get('allow')).toBe('GET, HEAD, OPTIONS, POST')
  })

  it('JSON goes by other names', async () => {
    const headers = { ...AS_ENVIRONMENT, 'content-type': 'application/merge-patch+json; charset=UTF-8' }
    expect((await send('PATCH', `/widget/${WIDGET_ID}`, '{}', headers)).status).toBe(200)
  })
})

it('an error has the form of AIP-193, in the contract’s spelling', async () => {
  const answer = await send('PATCH', '/widget/nonsense', '{}')
  expect(answer.json).toEqual({
    error: {
      code: 400,
      status: 'INVALID_ARGUMENT',
      message: 'id must be a valid UUID',
      details: [
        {
          '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
          reason: 'INVALID_FIELD',
          domain: 'patchbay',
          metadata: {},
        },
        {
          '@type': 'type.googleapis.com/google.rpc.BadRequest',
          field_violations: [{ field: 'id', description: 'must be a valid UUID', reason: 'string.uuid' }],
        },
      ],
    },
  })
})

interface ErrorDetail extends JsonObject {
  readonly reason: string
  readonly field_violations: readonly { readonly field: string; readonly reason: string }[]
}

function detailsOf({ json }: HttpAnswer): readonly ErrorDetail[] {
  return (json.error as unknown as { details: readonly ErrorDetail[] }).details
}

function reasonOf(answer: HttpAnswer): string | undefined {
  return detailsOf(answer)[0]?.reason
}

function violations(answer: HttpAnswer): string[] {
  const found = detailsOf(answer).flatMap((detail) => detail.field_violations ?? [])
  return found.map(({ field, reason }) => `${field} ${reason}`).sort()
}
