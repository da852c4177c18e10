import { describe, expect, test } from 'vitest'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import type { ScriptedAnswer } from '../../../support/upstream.ts'
import { failureOf, on, startEngine } from './engine.ts'

const engine = await startEngine()
const CONFIG = {
  credentials: { api_key: { config: { verification: { path: '/me' } } } },
  resources: {
    things: {
      list: { path: '/things', response_path: 'data' },
      get: { path: '/things/{{id}}' },
      create: { method: 'POST', path: '/things' },
      search: { path: '/search' },
    },
  },
}

/** One call of `things.get` with extra integration settings. */
function get(settings: JsonObject, answer: ScriptedAnswer, attemptsMax = 1) {
  engine.upstream.script({ request: 'GET /things/1', answer })
  return engine.call({ ...CONFIG, ...settings }, { ...on('things', 'get'), id: 1, limits: { attemptsMax } })
}

describe('what is called must exist and be allowed', () => {
  test.each([
    ['thngs', 'list', 'has no resource thngs, did you mean things?'],
    ['things', 'delete', 'has no method delete; there are create, get, list, search'],
  ])('%s.%s', async (resource, method, message) => {
    expect(await failureOf(engine.call(CONFIG, on(resource, method)))).toContain(message)
  })

  test.each([
    [{ kind: 'method', resource: 'things', method: 'create' }],
    [{ kind: 'method', resource: 'things', method: 'search' }],
    [{ kind: 'path', verb: 'post', path: '/x' }],
    [{ kind: 'path', verb: 'DELETE', path: '/x' }],
  ] as const)('a sandbox account may not call %o', async (target) => {
    const rejection = await failureOf(engine.call(CONFIG, { target }, { isSandbox: true }))
    expect(rejection).toContain('SANDBOX_ACCOUNT_READ_ONLY')
    expect(engine.upstream.requests).toEqual([])
  })

  test.each([
    ['GET /things', { kind: 'method', resource: 'things', method: 'list' }],
    ['GET /x', { kind: 'path', verb: 'get', path: '/x' }],
    ['OPTIONS /x', { kind: 'path', verb: 'OPTIONS', path: '/x' }],
  ] as const)('a sandbox account may call %s', async (request, target) => {
    engine.upstream.script({ request, answer: { json: {} } })
    expect((await engine.call(CONFIG, { target }, { isSandbox: true })).kind).toBe('ok')
  })
})

describe('paths that no method describes', () => {
  test('take address, headers and authorization of the definition', async () => {
    engine.upstream.script({
      request: 'PATCH /a%20b/c?x=1&y=2',
      headers: { authorization: 'Bearer k', 'x-a': 'a' },
      body: { z: 3 },
      answer: { status: 202, json: { done: true } },
    })
    const config = { headers: { 'X-A': 'a' }, authorization: { format: 'bearer' } }
    const target = { kind: 'path', verb: 'patch', path: 'a%20b/c?x=1' } as const
    const outcome = await engine.call(
      config,
      { target, query: { y: 2 }, body: { z: 3 } },
      { credentials: { api_key: 'k' } },
    )
    expect(outcome).toMatchObject({ kind: 'ok', status: 202, result: { done: true }, page: undefined })
  })

  test.each(['/../x', '/a/../../x', '/%2e%2e/x', '/a/./b', '\\..\\x'])('%s stays below the address', async (path) => {
    expect(await failureOf(engine.call({}, { target: { kind: 'path', verb: 'GET', path } }))).toContain(
      'PLACEHOLDER_UNRESOLVED',
    )
  })

  test('a path cannot name another host', async () => {
    engine.upstream.script({ request: 'GET /evil.example/x', answer: { json: 1 } })
    const outcome = await engine.call({}, { target: { kind: 'path', verb: 'GET', path: '//evil.example/x' } })
    expect(outcome.kind).toBe('ok')
  })
})

test('a credential is proved by its verification request', async () => {
  engine.upstream.script({ request: 'GET /me', answer: { status: 401, json: { message: 'no' } } })
  const outcome = await engine.call(CONFIG, { target: { kind: 'verification', credential: 'api_key' } })
  expect(outcome).toMatchObject({ kind: 'upstream_error', status: 401, action: 'refresh_token', message: 'no' })
})

describe('a rate limit is an outcome of its own', () => {
  const limited = { rate_limit: { is_rate_limited: 'status = 403 and headers."x-remaining" = "0"' } }

  test.each<[string, JsonObject, ScriptedAnswer, number]>([
    ['429 with seconds', {}, { status: 429, headers: { 'retry-after': '7' } }, 7],
    ['429 with decimals', {}, { status: 429, headers: { 'retry-after': '0.25' } }, 0.25],
    ['429 with an HTTP-date', {}, { status: 429, headers: { 'retry-after': 'Thu, 01 Jan 2026 00:01:30 GMT' } }, 90],
    [
      '429 with a date in the past',
      {},
      { status: 429, headers: { 'retry-after': 'Wed, 31 Dec 2025 00:00:00 GMT' } },
      60,
    ],
    ['429 with an epoch in seconds', {}, { status: 429, headers: { 'retry-after': '1767225660' } }, 60],
    ['429 with an epoch in milliseconds', {}, { status: 429, headers: { 'retry-after': '1767225630000' } }, 30],
    ['429 with a negative wait', {}, { status: 429, headers: { 'retry-after': '-5' } }, 60],
    ['429 with 0', {}, { status: 429, headers: { 'retry-after': '0' } }, 60],
    ['429 with a wait that never ends', {}, { status: 429, headers: { 'retry-after': '9'.repeat(9) } }, 86_400],
    [
      '429 with a date, by a server whose clock is 5 minutes behind',
      {},
      {
        status: 429,
        headers: { date: 'Wed, 31 Dec 2025 23:55:00 GMT', 'retry-after': 'Wed, 31 Dec 2025 23:55:20 GMT' },
      },
      20,
    ],
    [
      '429 with an epoch, by a server whose clock is 5 minutes ahead',
      {},
      { status: 429, headers: { date: 'Thu, 01 Jan 2026 00:05:00 GMT', 'retry-after': '1767225910' } },
      10,
    ],
    [
      'an expression for a reset that has just passed',
      { rate_limit: { retry_after_header_expression: '$max([0, $number(headers."x-reset") - 1767225600])' } },
      { status: 429, headers: { 'x-reset': '1767225599' } },
      60,
    ],
    [
      'an error expression that asks for no wait',
      { error_expression: '{"action": "rate_limited", "retry_after": 0}' },
      { status: 403 },
      60,
    ],
    ['429 with nonsense', {}, { status: 429, headers: { 'retry-after': 'soon' } }, 60],
    ['429 without a hint', {}, { status: 429 }, 60],
    ['an expression for the test', limited, { status: 403, headers: { 'x-remaining': '0', 'retry-after': '3' } }, 3],
    [
      'an expression for the wait',
      { rate_limit: { retry_after_header_expression: '$number(headers."x-wait") / 1000' } },
      { status: 429, headers: { 'x-wait': '1500', 'retry-after': '9' } },
      1.5,
    ],
    [
      'an expression for the wait that finds nothing leaves it to the header',
      { rate_limit: { retry_after_header_expression: 'headers."x-wait"' } },
      { status: 429, headers: { 'retry-after': '9' } },
      9,
    ],
    [
      'an error expression that calls a success one',
      { error_expression: 'body.error = "slow" ? {"status": 429, "retry_after": 4}' },
      { json: { error: 'slow' } },
      4,
    ],
    [
      'an error expression that says so by action',
      { error_expression: '{"status": 400, "action": "rate_limited"}' },
      { status: 400, headers: { 'retry-after': '2' } },
      2,
    ],
  ])('%s', async (_what, settings, answer, retryAfterSeconds) => {
    expect(await get(settings, answer, 6)).toMatchObject({ kind: 'rate_limited', retryAfterSeconds })
    expect(engine.sleptMs).toEqual([])
  })

  test('the test expression replaces the default rule', async () => {
    expect(await get(limited, { status: 429 })).toMatchObject({ kind: 'upstream_error', status: 429 })
  })

  test.each<[string, JsonObject, Record<string, string>, unknown]>([
    [
      'by expression',
      { rate_limit: { rate_limit_header_expression: '{"limit": headers."x-limit", "remaining": 5, "reset": null}' } },
      { 'x-limit': '10' },
      { limit: '10', remaining: '5', reset: undefined },
    ],
    [
      'by the standard headers',
      {},
      { 'ratelimit-limit': '100;w=10', 'ratelimit-remaining': '99', 'ratelimit-reset': '3' },
      { limit: '100;w=10', remaining: '99', reset: '3' },
    ],
    ['not at all', {}, {}, undefined],
  ])('what is left is told %s', async (_how, settings, headers, rateLimit) => {
    expect(await get(settings, { json: {}, headers })).toHaveProperty('rateLimit', rateLimit)
  })
})

describe('errors are normalised', () => {
  test.each<[string, JsonObject, ScriptedAnswer, object]>([
    [
      'a status of 400 and more is an error',
      {},
      { status: 404, json: { message: 'gone' } },
      { status: 404, message: 'gone', action: 'fail' },
    ],
    [
      'the usual places hold the message',
      {},
      { status: 422, json: { errors: [{ detail: 'bad name' }] } },
      { message: 'bad name' },
    ],
    [
      'without a message there is a sentence',
      {},
      { status: 500 },
      { message: 'the upstream answered 500', action: 'retry' },
    ],
    ['401 asks for a fresh token', {}, { status: 401 }, { action: 'refresh_token' }],
    [
      'a success may hide an error',
      {
        error_expression:
          'body.ok = false ? {"status": 422, "message": body.error, "metadata": {"code": 7}, "headers": {"X-Kind": "soft"}}',
      },
      { json: { ok: false, error: 'invalid_name' } },
      { status: 422, message: 'invalid_name', metadata: { code: 7 }, body: { ok: false, error: 'invalid_name' } },
    ],
    [
      'an error without a status is one of the upstream',
      { error_expression: '{"message": "m"}' },
      { json: {} },
      { status: 502, message: 'm' },
    ],
    [
      'a text from the expression is an error with that message',
      { error_expression: 'body.fault' },
      { json: { fault: 'locked' } },
      { status: 502, message: 'locked' },
    ],
    [
      'and a list or true one without a message',
      { error_expression: '$exists(body.errors)' },
      { json: { errors: [{ message: 'no such field' }] } },
      { status: 502, message: 'no such field' },
    ],
    [
      'nothing from the expression passes the answer on, whatever the status',
      { error_expression: 'null' },
      { status: 400 },
      { status: 400, action: 'fail', isPassedOn: true },
    ],
    ['and so does an empty text', { error_expression: '""' }, { status: 404 }, { status: 404, isPassedOn: true }],
    ['without an expression the status decides', {}, { status: 400 }, { status: 400, isPassedOn: false }],
    [
      'an error of the expression is not passed on',
      { error_expression: 'status >= 400 ? {"status": 400}' },
      { status: 404 },
      { status: 400, isPassedOn: false },
    ],
    [
      'what happens to the account goes by the status',
      { error_expression: 'null' },
      { status: 401 },
      { status: 401, action: 'refresh_token', isPassedOn: true },
    ],
    [
      'the action may be named',
      { error_expression: '{"status": 403, "action": "needs_reauth"}' },
      { status: 403 },
      { action: 'needs_reauth' },
    ],
    [
      'an unknown action is none',
      { error_expression: '{"status": 403, "action": "dance"}' },
      { status: 403 },
      { action: 'fail' },
    ],
  ])('%s', async (_what, settings, answer, expected) => {
    expect(await get(settings, answer)).toMatchObject({ kind: 'upstream_error', ...expected })
  })

  test('a status below 400 makes a success of an error, with result as the body', async () => {
    const settings = {
      error_expression: 'status = 404 ? {"status": 200, "result": {"items": []}, "headers": {"X-Was": "404"}}',
    }
    const outcome = await get(settings, { status: 404 })
    expect(outcome).toMatchObject({ kind: 'ok', status: 200, result: { items: [] }, headers: { 'x-was': '404' } })
  })

  test("the method's expression takes precedence, and null turns the integration's off", async () => {
    const resources = {
      a: { get: { path: '/a', error_expression: '{"status": 418}' } },
      b: { get: { path: '/b', error_expression: null } },
    }
    const config = { error_expression: '{"status": 499}', resources }
    engine.upstream.script({ request: 'GET /a', answer: { json: 1 } }, { request: 'GET /b', answer: { json: 1 } })
    expect(await engine.call(config, on('a', 'get'))).toMatchObject({ status: 418 })
    expect(await engine.call(config, on('b', 'get'))).toMatchObject({ kind: 'ok' })
  })

  test('an error declared harmless is an empty answer', async () => {
    const settings = { error_expression: 'status = 404 ? {"status": 404, "action": "ignore"}' }
    expect(await get(settings, { status: 404 })).toMatchObject({ kind: 'ok', result: null })
  })
})

describe('the result is what response_path selects', () => {
  test.each<[string | undefined, Json, Json]>([
    [undefined, { a: 1 }, { a: 1 }],
    ['data.items', { data: { items: [1] } }, [1]],
    ['data[1].x', { data: [{}, { x: 2 }] }, 2],
    ['missing', { data: 1 }, null],
    [
      '$.data[kind = "a"].id',
      {
        data: [
          { kind: 'a', id: 1 },
          { kind: 'b', id: 2 },
        ],
      },
      1,
    ],
    ['$map(items, function($i) { $i.id })', { items: [{ id: 1 }, { id: 2 }] }, [1, 2]],
  ])('%s of %j', async (response_path, json, result) => {
    engine.upstream.script({ request: 'GET /x', answer: { json } })
    const method = response_path === undefined ? { path: '/x' } : { path: '/x', response_path }
    expect(await engine.call({ resources: { x: { get: method } } }, on('x', 'get'))).toMatchObject({
      kind: 'ok',
      result,
    })
  })

  test.each<[Json, Json]>([
    [{ data: [{ id: 1 }] }, [{ id: 1 }]],
    [{ data: { id: 1 } }, [{ id: 1 }]],
    [{ data: null }, []],
    [{}, []],
  ])('of a list, %j is %j', async (json, result) => {
    engine.upstream.script({ request: 'GET /things', answer: { json } })
    const outcome = await engine.call(CONFIG, on('things', 'list'))
    expect(outcome).toMatchObject({ result, page: { nextCursor: null, stopReason: 'unpaginated' } })
  })
})

describe('what may be repeated is repeated', () => {
  const flaky = { status: 503, json: { message: 'busy' } }

  test('a passing error of a reading call, with growing waits', async () => {
    engine.upstream.script(
      { request: 'GET /things/1', answer: flaky },
      { request: 'GET /things/1', answer: { status: 500 } },
      { request: 'GET /things/1', answer: { json: { id: 1 } } },
    )
    const outcome = await engine.call(CONFIG, { ...on('things', 'get'), id: 1 })
    expect(outcome).toMatchObject({ kind: 'ok', result: { id: 1 } })
    expect(engine.sleptMs).toEqual([250, 500])
  })

  test('a connection that fails, until the attempts are used up', async () => {
    const config = { ...CONFIG, base_url: 'http://127.0.0.1:1', retry: { max_attempts: 3 } }
    expect(await failureOf(engine.call(config, { ...on('things', 'get'), id: 1 }))).toContain('UPSTREAM_UNREACHABLE')
    expect(engine.sleptMs).toEqual([250, 500])
  })

  test('up to max_attempts, then the last answer counts', async () => {
    engine.upstream.script({ request: 'GET /things/1', answer: flaky, times: 3 })
    const outcome = await engine.call({ ...CONFIG, retry: { max_attempts: 3 } }, { ...on('things', 'get'), id: 1 })
    expect(outcome).toMatchObject({ kind: 'upstream_error', status: 503, message: 'busy' })
  })

  test("the upstream's hint is the floor, and a wait beyond max_elapsed is not begun", async () => {
    engine.upstream.script(
      { request: 'GET /things/1', answer: { ...flaky, headers: { 'retry-after': '20' } } },
      { request: 'GET /things/1', answer: { ...flaky, headers: { 'retry-after': '20' } } },
    )
    const outcome = await engine.call(CONFIG, { ...on('things', 'get'), id: 1 })
    expect(outcome.kind).toBe('upstream_error')
    expect(engine.sleptMs).toEqual([20_000])
  })

  test('a call that writes is not repeated, unless the definition allows it', async () => {
    const request = { ...on('things', 'create'), body: {} }
    engine.upstream.script({ request: 'POST /things', answer: flaky })
    expect((await engine.call(CONFIG, request)).kind).toBe('upstream_error')
    engine.upstream.script(
      { request: 'POST /things', answer: flaky },
      { request: 'POST /things', answer: { status: 201 } },
    )
    expect((await engine.call({ ...CONFIG, retry: { retry_unsafe: true } }, request)).kind).toBe('ok')
  })

  test('nothing is repeated where the caller forbids it', async () => {
    expect((await get({}, flaky, 1)).kind).toBe('upstream_error')
  })
})

describe('a third party that does not answer', () => {
  test.each([
    ['integration', { timeout: 0.1 }, {}],
    ['method', { timeout: 20 }, { timeout: 0.1 }],
  ])('has failed after the timeout of the %s, and the message says who was slow', async (_, config, method) => {
    const settings = { ...CONFIG, ...config, resources: { things: { get: { path: '/things/{{id}}', ...method } } } }
    engine.upstream.script({ request: 'GET /things/1', answer: { hang: true } })
    const call = engine.call(settings, { ...on('things', 'get'), id: 1, limits: { attemptsMax: 1 } })
    expect(await failureOf(call)).toMatch(/^DEADLINE_EXCEEDED.*"127\.0\.0\.1(:\d+)?" did not answer within 0\.1 s/)
  })

  test.each([
    [0.3, 1],
    [0.4, 2],
  ])('is asked again only if it can take as long once more within %s s', async (max_elapsed, times) => {
    const config = { ...CONFIG, timeout: 0.1, retry: { max_elapsed } }
    engine.upstream.script({ request: 'GET /things/1', answer: { hang: true }, times })
    expect(await failureOf(engine.call(config, { ...on('things', 'get'), id: 1 }))).toContain('DEADLINE_EXCEEDED')
  })
})

describe('redirects', () => {
  test('of a reading call are followed, with the credential on the same origin', async () => {
    const headers = { authorization: 'Bearer k' }
    engine.upstream.script(
      { request: 'GET /things/1', headers, answer: { status: 301, headers: { location: '/things/one' } } },
      { request: 'GET /things/one', headers, answer: { json: { id: 1 } } },
    )
    const config = { ...CONFIG, authorization: { format: 'bearer' } }
    const outcome = await engine.call(config, { ...on('things', 'get'), id: 1 }, { credentials: { api_key: 'k' } })
    expect(outcome).toMatchObject({ kind: 'ok', result: { id: 1 } })
  })

  test('of a writing call are an error that names the target', async () => {
    engine.upstream.script({ request: 'POST /things', answer: { status: 307, headers: { location: '/elsewhere' } } })
    const outcome = await engine.call(CONFIG, { ...on('things', 'create'), body: {} })
    expect(outcome).toMatchObject({ kind: 'upstream_error', status: 307, action: 'fail', isPassedOn: false })
    expect(outcome).toHaveProperty('message', expect.stringMatching(/redirects to http.*\/elsewhere.*POST/))
  })
})

test('an address that egress does not allow is rejected', async () => {
  const config = { base_url: 'http://169.254.169.254', resources: CONFIG.resources }
  expect(await failureOf(engine.call(config, on('things', 'list')))).toContain('EGRESS_BLOCKED')
})
