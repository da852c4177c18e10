import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { ProxyService } from '../../gen/patchbay/v1/proxy_service_pb.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import type { Client } from '../support/client.ts'
import { firstTenant } from '../support/seeded-tenant.ts'
import { startUpstream } from '../support/upstream.ts'
import { callDefinition, connectAccount, LOCAL_UPSTREAM } from './calls.ts'

const upstream = await startUpstream()
const app = await startTestApp(LOCAL_UPSTREAM)
const tenant = firstTenant(app)
const { accountId } = await connectAccount(app, tenant, callDefinition(upstream.url))
const sandbox = await connectAccount(app, tenant, callDefinition(upstream.url), { is_sandbox: true })
const { call } = ProxyService.method

afterAll(() => upstream[Symbol.asyncDispose]())
afterEach(() => upstream.verify())

const of = (resource: string, method: string, also: JsonObject = {}) => ({
  integrated_account_id: accountId,
  resource,
  method,
  ...also,
})

/** The HTTP status of a FAILED_PRECONDITION: Connect's is that of the code, REST has one for each reason. */
const statusOver = ({ wire }: Client, rest: number) => ({ grpc: undefined, connect: 400, rest })[wire]

/** What REST leaves to HTTP: status and headers of the third party are not in its body. */
function resultOf(answer: JsonObject): JsonObject {
  const { status: _, headers: _headers, rate_limit: _limit, ...rest } = answer
  return rest
}

describe.each(inTurn(app.clients()))('a call over $wire', (client) => {
  it('answers what the definition takes out, with the credential sent', async () => {
    upstream.script({
      request: 'GET /contacts/7',
      headers: { authorization: 'Bearer k-123' },
      answer: { json: { id: 7, tags: ['a', null, { deep: 1.5 }] } },
    })

    const answer = await client.ok(call, of('contacts', 'get', { id: '7' }))
    expect(resultOf(answer)).toEqual({ result: { id: 7, tags: ['a', null, { deep: 1.5 }] } })
  })

  it('hands arguments to an action, types kept', async () => {
    upstream.script({
      request: 'POST /archive/2026',
      body: { keep: [1, true, null], note: 'n' },
      answer: { json: { ok: true } },
    })
    const given = { args: { year: 2026, keep: [1, true, null] }, body: { note: 'n' } }
    expect(resultOf(await client.ok(call, of('_', 'archive', given)))).toEqual({ result: { ok: true } })
  })

  it('hands arguments to a method, and calls one of a resource without an id', async () => {
    upstream.script({ request: 'POST /contacts/import?mode=new', body: { a: 1 }, answer: { json: { ok: true } } })
    const given = { args: { mode: 'new' }, body: { a: 1 } }
    expect(resultOf(await client.ok(call, of('contacts', 'import', given)))).toEqual({ result: { ok: true } })
  })

  it('answers one page of a list, and a cursor to the next until there is none', async () => {
    upstream.script(
      { request: 'GET /contacts?kind=lead&page=1&limit=2', answer: { json: { data: [{ id: 1 }, { id: 2 }] } } },
      { request: 'GET /contacts?kind=lead&page=2&limit=2', answer: { json: { data: [] } } },
    )

    const first = await client.ok(call, of('contacts', 'list', { query: { kind: 'lead' } }))
    expect(resultOf(first)).toEqual({ result: [{ id: 1 }, { id: 2 }], next_cursor: expect.any(String) })

    const page = { next_cursor: first.next_cursor ?? null }
    const last = await client.ok(call, of('contacts', 'list', { query: { kind: 'lead' }, page }))
    expect(resultOf(last)).toEqual({ result: [], stop_reason: 'empty_page' })
  })

  it('sends a body', async () => {
    upstream.script({ request: 'POST /contacts', body: { name: 'Ann' }, answer: { status: 201, json: { id: 9 } } })
    expect(resultOf(await client.ok(call, of('contacts', 'create', { body: { name: 'Ann' } })))).toEqual({
      result: { id: 9 },
    })
  })

  it('shows the body as it came when asked to', async () => {
    upstream.script({ request: 'GET /contacts?page=1&limit=1', answer: { json: { data: [1], total: 1 } } })
    const asked = of('contacts', 'list', { page: { limit: 1 }, include_raw: true })
    expect(await client.ok(call, asked)).toMatchObject({ result: [1], raw: { data: [1], total: 1 } })
  })

  it('shows what would be sent in a dry run, and sends nothing', async () => {
    const answer = await client.ok(call, of('contacts', 'list', { query: { kind: 'lead' }, dry_run: true }))

    expect(answer.dry_run).toMatchObject({
      method: 'GET',
      url: `${upstream.url}/contacts?kind=lead&page=1&limit=2`,
      headers: { authorization: expect.stringContaining('***') },
      is_write: false,
      paging: { format: 'page', limit: 2 },
    })
    expect(JSON.stringify(answer)).not.toContain('k-123')
    expect(upstream.requests).toEqual([])
  })

  it('is rejected for what the definition does not have, naming what it has', async () => {
    for (const request of [of('contact', 'list'), of('contacts', 'drop')])
      expect(await client.callError(call, request)).toMatchObject({
        code: 'FAILED_PRECONDITION',
        reason: 'METHOD_NOT_DEFINED',
        message: expect.stringContaining('contacts'),
        httpStatus: statusOver(client, 400),
      })
  })

  it('is rejected through a sandbox account when it would write', async () => {
    const request = { ...of('contacts', 'create', { body: {} }), integrated_account_id: sandbox.accountId }
    expect(await client.callError(call, request)).toMatchObject({
      reason: 'SANDBOX_ACCOUNT_READ_ONLY',
      httpStatus: statusOver(client, 405),
    })
  })

  it('is rejected with a cursor that was never given out', async () => {
    const rejection = await client.callError(call, of('contacts', 'list', { page: { next_cursor: 'bm8' } }))
    expect(rejection).toMatchObject({ code: 'INVALID_ARGUMENT', reason: 'PAGE_TOKEN_INVALID' })
  })
})

describe.each(inTurn(app.clients()))('an error of the third party over $wire', (client) => {
  const failing = (status: number, body: JsonObject, headers = {}) =>
    upstream.script({ request: 'GET /contacts/7', answer: { status, json: body, headers } })
  const get = (also: JsonObject = {}) => client.callError(call, of('contacts', 'get', { id: '7', ...also }))

  it.each([
    [404, 404],
    [403, 403],
    [422, 422],
    [501, 502],
    [505, 502],
  ])('gets with its status and message: %i', async (status, rest) => {
    failing(status, { message: 'it said no' })
    expect(await get()).toMatchObject({
      code: 'FAILED_PRECONDITION',
      reason: 'UPSTREAM_ERROR',
      message: 'it said no',
      metadata: { upstream_status: String(status), resource: 'contacts', method: 'get' },
      httpStatus: statusOver(client, rest),
    })
  })

  it('carries the headers and the result that the definition gives it, without secrets', async () => {
    const rejected = { 'set-cookie': 'a=b', 'x-bad': 'ü', 'X-Accel-Redirect': '/internal' }
    const headers = { 'X-Fault': 'f-1', 'x-echo': 'k-123', 'content-length': '1', ...rejected }
    failing(200, { fault: { status: 409, headers, result: { why: 'taken', by: 'k-123' } } }, { 'x-up': 'upstream' })
    const path = client.wire === 'rest' ? '/proxy/contacts/7' : '/patchbay.v1.ProxyService/Call'
    if (client.wire === 'grpc') return void (await get())
    const query = client.wire === 'rest' ? `?integrated_account_id=${accountId}` : ''
    const response = await fetch(`${app.url}${path}${query}`, {
      headers: { authorization: `Bearer ${tenant.environmentToken}`, 'content-type': 'application/json' },
      ...(client.wire === 'rest' ? {} : { method: 'POST', body: JSON.stringify(of('contacts', 'get', { id: '7' })) }),
    })
    const shown = Object.fromEntries(response.headers)
    expect(shown).toMatchObject({ 'x-fault': 'f-1', 'x-echo': '***', 'content-type': 'application/json' })
    for (const name of ['set-cookie', 'x-bad', 'x-accel-redirect', 'x-up']) expect(shown).not.toHaveProperty(name)
    const { error, details } = (await response.json()) as { error?: JsonObject; details?: { debug: JsonObject }[] }
    const result = error?.result ?? details?.find(({ debug }) => 'result' in debug)?.debug.result
    expect(result).toEqual({ why: 'taken', by: '***' })
  })

  it('that the definition finds inside a 200 carries its metadata, as texts', async () => {
    failing(200, { fault: { status: 409, text: 'taken', code: 12, at: { line: 3 } } })
    const { message, metadata, httpStatus } = await get()
    expect([message, httpStatus]).toEqual(['taken', statusOver(client, 409)])
    expect(metadata).toEqual({
      log_id: expect.any(String),
      code: '12',
      at: '{"line":3}',
      upstream_status: '409',
      upstream_request: 'GET /contacts/7',
      resource: 'contacts',
      method: 'get',
    })
  })

  it('that is a rate limit says how long to wait', async () => {
    failing(429, { message: 'slow down' }, { 'retry-after': '17' })
    expect(await get()).toMatchObject({
      code: 'RESOURCE_EXHAUSTED',
      reason: 'UPSTREAM_RATE_LIMITED',
      retryAfterSeconds: 17,
    })
  })

  it('shows no body unless asked to', async () => {
    failing(404, { message: 'no', secret: 'inside' })
    expect(JSON.stringify(await client.send(call, of('contacts', 'get', { id: '7' })))).not.toContain('inside')
  })
})

describe('a target', () => {
  const client = app.client('connect')
  const rejectionOf = (request: JsonObject) => client.callError(call, { integrated_account_id: accountId, ...request })

  it.each<[string, JsonObject, string]>([
    ['is missing', {}, 'resource'],
    ['has no method', { resource: 'contacts' }, 'method'],
    ['has no resource', { method: 'list' }, 'resource'],
    ['is given twice', { resource: 'a', method: 'b', raw_target: { verb: 'GET', path: '/' } }, 'raw_target'],
    ['has a verb that is none', { raw_target: { verb: 'G ET', path: '/' } }, 'raw_target.verb'],
    ['has no path', { raw_target: { verb: 'GET', path: '' } }, 'raw_target.path'],
    ['is not a dry run but has a sample', { resource: 'a', method: 'b', sample: {} }, 'sample'],
  ])('that %s is rejected with its field', async (_, request, field) => {
    const { reason, violations } = await rejectionOf(request)
    expect([reason, violations.map((violation) => violation.field)]).toEqual(['INVALID_FIELD', [field]])
  })

  it('may be a path that the definition does not describe', async () => {
    upstream.script({ request: 'DELETE /odd/path?a=b%20c', answer: { json: { gone: true } } })
    const raw_target = { verb: 'delete', path: '/odd/path?a=b%20c' }
    expect(await client.ok(call, { integrated_account_id: accountId, raw_target })).toMatchObject({
      status: 200,
      result: { gone: true },
    })
  })

  it('may not climb out of the base address', async () => {
    const raw_target = { verb: 'GET', path: '/a/../../b' }
    expect(await client.callError(call, { integrated_account_id: accountId, raw_target })).toMatchObject({
      code: 'FAILED_PRECONDITION',
    })
  })

  it('may be a named action of the definition', async () => {
    upstream.script({ request: 'POST /sign-off', answer: { json: { done: true } }, times: 3 })
    for (const each of app.clients())
      expect(resultOf(await each.ok(call, of('_', 'sign_off')))).toEqual({ result: { done: true } })
  })
})

describe('the answer over RPC', () => {
  const rpcClients: readonly Client[] = [app.client('grpc'), app.client('connect')]

  it.each(rpcClients)('carries status, headers and rate limit of the third party: $wire', async (client) => {
    const headers = { 'x-limit': '100', 'x-left': '99', 'x-reset': '60', 'x-version': '3', 'set-cookie': 'a=b' }
    upstream.script({ request: 'GET /contacts/7', answer: { status: 203, json: {}, headers } })

    const answer = await client.ok(call, of('contacts', 'get', { id: '7' }))

    expect(answer).toMatchObject({
      status: 203,
      headers: { 'x-version': '3' },
      rate_limit: { limit: '100', remaining: '99', reset: '60' },
    })
    expect(answer.headers).not.toHaveProperty('set-cookie')
  })

  it.each(rpcClients)('that no message can hold is rejected, and REST still gives it: $wire', async (client) => {
    const deep = JSON.parse(`${'{"a":'.repeat(60)}1${'}'.repeat(60)}`)
    upstream.script({ request: 'GET /contacts/7', answer: { json: deep }, times: 2 })

    expect(await client.callError(call, of('contacts', 'get', { id: '7' }))).toMatchObject({
      reason: 'UPSTREAM_INVALID_RESPONSE',
    })
    expect(resultOf(await app.client('rest').ok(call, of('contacts', 'get', { id: '7' })))).toEqual({ result: deep })
  })
})
