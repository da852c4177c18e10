import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { startTestApp } from '../support/app.ts'
import { firstTenant } from '../support/seeded-tenant.ts'
import { startUpstream } from '../support/upstream.ts'
import { LOCAL_UPSTREAM } from './calls.ts'
import { connectMapped, contact } from './unified.ts'

const upstream = await startUpstream()
const app = await startTestApp({ ...LOCAL_UPSTREAM, PATCHBAY_RATE_LIMIT: '100000' })
const tenant = firstTenant(app)
const { accountId } = await connectMapped(app, tenant, upstream.url)

afterAll(() => upstream[Symbol.asyncDispose]())
afterEach(() => upstream.verify())

interface Sent {
  readonly body?: unknown
  readonly type?: string
}

/** One request to a path below `/unified`, with the account's id added to its query. */
async function send(verb: string, path: string, { body, type = 'application/json' }: Sent = {}) {
  const url = `${app.url}/unified${path}${path.includes('?') ? '&' : '?'}integrated_account_id=${accountId}`
  const response = await fetch(url, {
    method: verb,
    headers: {
      authorization: `Bearer ${tenant.environmentToken}`,
      ...(body === undefined ? {} : { 'content-type': type }),
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, json: text === '' ? undefined : JSON.parse(text) }
}

type Answer = Awaited<ReturnType<typeof send>>
const reasonOf = ({ json }: Answer) => json?.error?.details?.[0]?.reason
const fieldsOf = ({ json }: Answer) =>
  json?.error?.details?.[1]?.field_violations.map(({ field }: { field: string }) => field)

describe('/unified', () => {
  it('names the entry of the request log that an answer or error comes from', async () => {
    upstream.script(
      { request: 'GET /contacts/1', answer: { json: contact(1) } },
      { request: 'GET /contacts/2', answer: { status: 404, json: {} } },
    )
    const ids = [await send('GET', '/crm/contacts/1'), await send('GET', '/crm/contacts/2')].map(({ headers }) =>
      headers.get('patchbay-log-id'),
    )
    const headers = { authorization: `Bearer ${tenant.environmentToken}` }
    const urlOf = async (id: string | null) => {
      const answer = await fetch(`${app.url}/call-log/${id}`, { headers })
      return ((await answer.json()) as { readonly url: string }).url
    }
    expect(await Promise.all(ids.map(urlOf))).toEqual([`${upstream.url}/contacts/1`, `${upstream.url}/contacts/2`])
  })

  it.each<[string, string, unknown, string, unknown?]>([
    ['GET', '/crm/contacts/1', undefined, 'GET /contacts/1'],
    ['GET', '/crm/contacts/a%2Fb', undefined, 'GET /contacts/a%2Fb'],
    ['POST', '/crm/contacts', { first_name: 'Ada' }, 'POST /contacts', { first: 'Ada' }],
    [
      'POST',
      '/crm/contacts',
      { first_name: 'Ada', remote_fields: { first: 'Eve', vip: true } },
      'POST /contacts',
      { first: 'Eve', vip: true },
    ],
    ['PATCH', '/crm/contacts/1', { first_name: 'Ada' }, 'PATCH /contacts/1', { first: 'Ada' }],
    ['PUT', '/crm/contacts/1', { first_name: 'Ada' }, 'PATCH /contacts/1', { first: 'Ada' }],
    ['POST', '/crm/contacts/1/merge', { into: '2' }, 'POST /contacts/1/merge', { into: '2' }],
    ['POST', '/crm/contacts/1/merge?remote_query[mode]=soft', { into: '2' }, 'POST /contacts/1/merge?mode=soft'],
  ])('%s %s', async (verb, path, body, request, sent) => {
    upstream.script({ request, ...(sent === undefined ? {} : { body: sent as never }), answer: { json: contact(1) } })
    const { status, json } = await send(verb, path, { body })
    expect([status, json.result.id, Object.keys(json)]).toEqual([200, '1', ['result']])
  })

  it('lists with filters, each by its own name, and pages with a cursor', async () => {
    const query = 'lifecycle_stage[in]=lead,customer&updated_at[gte]=2026-01-01&sort_by=updated_at&limit=1'
    upstream.script(
      {
        request: 'GET /contacts?stage=L&stage=C&since=2026-01-01&order=changed&page=1&limit=1',
        answer: { json: { data: [contact(1)] } },
      },
      {
        request: 'GET /contacts?stage=L&stage=C&since=2026-01-01&order=changed&page=2&limit=1',
        answer: { json: { data: [] } },
      },
    )
    const first = await send('GET', `/crm/contacts?${query}`)
    expect(Object.keys(first.json)).toEqual(['result', 'next_cursor'])
    const last = await send('GET', `/crm/contacts?${query}&next_cursor=${first.json.next_cursor}`)
    expect(last.json).toEqual({ result: [], stop_reason: 'empty_page' })
  })

  it.each([
    ['another filter', '/crm/contacts?lifecycle_stage=customer'],
    ['no filter', '/crm/contacts?'],
    ['another order', '/crm/contacts?lifecycle_stage=lead&sort_by=updated_at'],
    ['a further parameter', '/crm/contacts?lifecycle_stage=lead&remote_query[a]=b'],
  ])('answers a cursor of another list with an error: %s', async (_what, path) => {
    upstream.script({ request: 'GET /contacts?stage=L&page=1&limit=1', answer: { json: { data: [contact(1)] } } })
    const first = await send('GET', '/crm/contacts?lifecycle_stage=lead&limit=1')
    const answer = await send('GET', `${path}&next_cursor=${first.json.next_cursor}`)
    expect([answer.status, reasonOf(answer), fieldsOf(answer)]).toEqual([400, 'PAGE_TOKEN_INVALID', ['next_cursor']])
  })

  it('takes a cursor with another page size, and filters in any order', async () => {
    const answerOf = (id: number) => ({ json: { data: [contact(id)] } })
    upstream.script(
      { request: 'GET /contacts?stage=L&since=2026-01-01&page=1&limit=1', answer: answerOf(1) },
      { request: 'GET /contacts?since=2026-01-01&stage=L&page=2&limit=1', answer: answerOf(2) },
    )
    const first = await send('GET', '/crm/contacts?lifecycle_stage=lead&updated_at[gte]=2026-01-01&limit=1')
    const path = '/crm/contacts?updated_at[gte]=2026-01-01&lifecycle_stage=lead&limit=2'
    expect((await send('GET', `${path}&next_cursor=${first.json.next_cursor}`)).status).toBe(200)
  })

  it('takes a repeated name for a list of values, and names of its own for no filters', async () => {
    upstream.script({
      request: 'GET /contacts?stage=L&stage=C&page=1&limit=2',
      answer: { json: { data: [] } },
    })
    const own = 'expand=owner&include_sensitive=true&strict_filters=true&include_raw=false&dry_run=false'
    const { status } = await send('GET', `/crm/contacts?lifecycle_stage=lead&lifecycle_stage=customer&${own}`)
    expect(status).toBe(200)
  })

  it.each([
    ['POST', '/crm/contacts?dryrun=true', { first_name: 'Ada' }, 'dryrun', 'did you mean dry_run?'],
    ['PATCH', '/crm/contacts/1?dry-run=true', { first_name: 'Ada' }, 'dry-run', 'did you mean dry_run?'],
    ['DELETE', '/crm/contacts/1?dryRun=true', undefined, 'dryRun', 'did you mean dry_run?'],
    ['DELETE', '/crm/contacts/1?lifecycle_stage=lead', undefined, 'lifecycle_stage', 'not a parameter of delete'],
    ['POST', '/crm/contacts?first_name=Eve', { last_name: 'B' }, 'first_name', 'are given in the body'],
    ['POST', '/crm/contacts/1/merge?force=true', { into: '2' }, 'force', 'not a parameter of merge'],
    ['GET', '/crm/contacts/1?remote_data=true', undefined, 'remote_data', 'did you mean include_remote_data?'],
    ['GET', '/crm/contacts?cursor=x', undefined, 'cursor', 'did you mean next_cursor?'],
    ['GET', '/crm/contacts?Limit=3', undefined, 'Limit', 'did you mean limit?'],
    ['POST', '/crm/contacts', {}, 'body', 'has nothing to create: it needs a field of the resource'],
    ['PATCH', '/crm/contacts/1', {}, 'body', 'has nothing to update'],
    ['PATCH', '/crm/contacts/1', undefined, 'body', 'has nothing to update'],
    ['GET', '/crm/contacts?limit=1&limit=2', undefined, 'limit', 'more than once'],
    ['GET', '/crm/contacts?sort_by=a&sort_by=b', undefined, 'sort_by', 'more than once'],
  ])('%s %s is an error about the parameter, and sends nothing', async (verb, path, body, field, text) => {
    const answer = await send(verb, path, { body })
    expect([answer.status, reasonOf(answer), fieldsOf(answer)]).toEqual([400, 'INVALID_FIELD', [field]])
    expect(JSON.stringify(answer.json)).toContain(text)
  })

  it('suggests a filter that is near an unknown one', async () => {
    upstream.script({ request: 'GET /contacts?page=1&limit=2', answer: { json: { data: [] } } })
    const { json } = await send('GET', '/crm/contacts?lifecycle_stag=lead')
    expect(json.ignored_filters).toEqual([
      { field: 'lifecycle_stag', op: 'eq', reason: 'unknown_field', suggestion: 'lifecycle_stage' },
    ])
  })

  it('answers HEAD like GET, without the body, and shows the rate limit of the third party', async () => {
    upstream.script({
      request: 'GET /contacts/1',
      answer: { json: contact(1), headers: { 'x-limit': '60', 'x-left': '59' } },
    })
    const { status, json, headers } = await send('HEAD', '/crm/contacts/1')
    expect([status, json, headers.get('ratelimit-limit'), headers.get('ratelimit-remaining')]).toEqual([
      200,
      undefined,
      '60',
      '59',
    ])
  })

  it('answers a rate limit at once, and an error with its body when asked to', async () => {
    upstream.script(
      { request: 'GET /contacts/1', answer: { status: 429, json: {}, headers: { 'retry-after': '9' } } },
      { request: 'GET /contacts/2', answer: { status: 404, json: { message: 'no', code: 4 } } },
    )
    const limited = await send('GET', '/crm/contacts/1')
    expect([limited.status, reasonOf(limited), limited.headers.get('retry-after')]).toEqual([
      429,
      'UPSTREAM_RATE_LIMITED',
      '9',
    ])
    const missing = await send('GET', '/crm/contacts/2?include_raw=true')
    expect([missing.status, missing.json.error.raw]).toEqual([404, { message: 'no', code: 4 }])
  })

  it.each([
    ['PATCH', '/crm/contacts', 'GET, HEAD, OPTIONS, POST'],
    ['GET', '/crm/contacts/1/merge', 'OPTIONS, POST'],
  ])('%s %s is not allowed, and says what is', async (verb, path, allow) => {
    const answer = await send(verb, path)
    expect([answer.status, reasonOf(answer)]).toEqual([405, 'METHOD_NOT_ALLOWED'])
    expect(answer.headers.get('allow')).toBe(allow)
  })

  it.each(['/crm', '/crm/', '/crm/contacts/', '/crm/contacts/1/merge/now', '//contacts'])(
    'there is nothing at %s',
    async (path) => {
      const answer = await send('GET', path)
      expect([answer.status, reasonOf(answer)]).toEqual([404, 'ROUTE_NOT_FOUND'])
    },
  )

  it.each<[string, string, string, Sent, number, string, string[]?]>([
    ['a text', 'POST', '/crm/contacts', { body: '"Ada"' }, 400, 'INVALID_FIELD', ['body']],
    ['a list', 'POST', '/crm/contacts', { body: '[]' }, 400, 'INVALID_FIELD', ['body']],
    ['no JSON', 'POST', '/crm/contacts', { body: '{' }, 400, 'MALFORMED_BODY'],
    ['a form', 'POST', '/crm/contacts', { body: 'a=b', type: 'text/plain' }, 415, 'UNSUPPORTED_MEDIA_TYPE'],
    ['raw fields', 'POST', '/crm/contacts', { body: { remote_fields: 1 } }, 400, 'INVALID_FIELD', ['remote_fields']],
    ['an account twice', 'GET', '/crm/contacts?integrated_account_id=1', {}, 400, 'INVALID_FIELD'],
    ['brackets', 'GET', '/crm/contacts?a[b][c][d][e][f]=1', {}, 400, 'INVALID_FIELD', ['a[b][c][d][e][f]']],
    ['a value of a value', 'GET', '/crm/contacts?owner[gt][x]=1', {}, 400, 'INVALID_FIELD', ['owner[gt]']],
    ['a name', 'GET', '/crm/contacts?%00=1', {}, 400, 'INVALID_FIELD'],
    ['an encoding', 'GET', '/crm/contacts?a=%ff', {}, 400, 'INVALID_FIELD', ['a']],
    ['a path', 'GET', '/crm/%ff', {}, 400, 'INVALID_FIELD', ['path']],
    ['a prototype', 'GET', '/crm/contacts?__proto__[gt]=1', {}, 400, 'INVALID_FIELD', ['__proto__[gt]']],
    ['a method', 'POST', '/crm/contacts/1', { body: {} }, 400, 'UNIFIED_NOT_MAPPED'],
    ['a resource', 'GET', '/crm/constructor', {}, 400, 'UNIFIED_NOT_MAPPED'],
    ['a cursor', 'GET', '/crm/contacts?next_cursor=x', {}, 400, 'PAGE_TOKEN_INVALID'],
  ])('rejects %s', async (_, verb, path, sent, status, reason, fields) => {
    const answer = await send(verb, path, sent)
    expect([answer.status, reasonOf(answer)]).toEqual([status, reason])
    if (fields !== undefined) expect(fieldsOf(answer)).toEqual(fields)
    expect(upstream.requests).toEqual([])
  })

  it('needs a token', async () => {
    const response = await fetch(`${app.url}/unified/crm/contacts?integrated_account_id=${accountId}`)
    expect(response.status).toBe(401)
  })
})
