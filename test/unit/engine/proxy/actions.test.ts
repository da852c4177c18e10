import { beforeEach, describe, expect, test } from 'vitest'
import type {
  AccountAccess,
  AccountReporter,
  CredentialRefresher,
  ProxyRequest,
} from '../../../../src/engine/proxy/index.ts'
import { Failure } from '../../../../src/foundation/base/index.ts'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import { collect, failureOf, NOW, startEngine } from './engine.ts'

/** Records the reports, and refreshes with what a test gives it. */
const kept: JsonObject[] = []
let renewed: AccountAccess | undefined
let rejection: Failure | undefined
const accountPort: CredentialRefresher & AccountReporter = {
  refresh: async () => renewed,
  report: async () => {},
  async updateContext(_access, patch) {
    if (rejection !== undefined) throw rejection
    kept.push(patch)
  },
}
beforeEach(() => {
  kept.length = 0
  renewed = undefined
  rejection = undefined
})

const engine = await startEngine({ credentialRefresher: accountPort, accountReporter: accountPort })
const script = engine.upstream.script
const action = (name: string) => ({ target: { kind: 'action', action: name } as const })
const withSteps = (...steps: JsonObject[]): JsonObject => ({ actions: { run: { steps } } })
const request = (path: string, more: JsonObject = {}) => ({ type: 'request', config: { path, ...more } })

const run = (config: JsonObject, more: Omit<ProxyRequest, 'target'> = {}, account: Partial<AccountAccess> = {}) =>
  engine.runAction(config, { ...action('run'), ...more }, account)

async function resultOf(config: JsonObject, more: Omit<ProxyRequest, 'target'> = {}): Promise<Json> {
  const { outcome: end } = await run(config, more)
  if (end.kind !== 'ok') throw new Error(JSON.stringify(end))
  return end.result
}

describe('the steps of an action', () => {
  test('a request is a method of its own: address, headers, authorization and response_path', async () => {
    script({
      request: 'POST /sites?kind=a',
      headers: { authorization: 'Bearer k', 'x-step': 's' },
      body: { name: 'acme' },
      answer: { json: { data: { id: 7 } } },
    })
    const step = request('/sites', {
      method: 'post',
      headers: { 'X-Step': 's' },
      query: { kind: 'a' },
      body: { name: '{{args.name}}' },
      response_path: 'data.id',
    })
    const config = { ...withSteps(step), authorization: { format: 'bearer', config: { token: 'k' } } }
    expect(await resultOf(config, { args: { name: 'acme' } })).toBe(7)
  })

  test('a request sends of the caller only what its templates read', async () => {
    script(
      { request: 'GET /a?q=1', headers: { 'x-caller': null }, body: '', answer: { json: {} } },
      { request: 'POST /b', body: { wanted: true }, answer: { json: {} } },
    )
    await resultOf(
      withSteps(
        request('/a', { query: { q: '{{query.q}}' } }),
        request('/b', { method: 'POST', body: { wanted: '{{body.wanted}}' } }),
      ),
      { query: { q: 1, other: 2 }, body: { wanted: true, other: 1 }, headers: { 'x-caller': 'c' } },
    )
  })

  test('each reads the results before it, in templates and expressions by the same names', async () => {
    script(
      { request: 'GET /login', answer: { json: { session: 's-1', tenants: ['t-1'] } } },
      { request: 'GET /tenants/t-1', headers: { 'x-session': 's-1' }, answer: { json: { plan: 'pro' } } },
    )
    const config = withSteps(
      { ...request('/login'), name: 'login' },
      request('/tenants/{{$previous.tenants[0]}}', { headers: { 'X-Session': '{{$steps.login.session}}' } }),
      {
        type: 'transform',
        config: '{"session": $steps.login.session, "plan": $previous.plan, "also": $steps.request_2}',
      },
    )
    expect(await resultOf(config)).toEqual({ session: 's-1', plan: 'pro', also: { plan: 'pro' } })
  })

  test('expressions see the call and the context, and neither credentials nor variables that they do not name', async () => {
    const config = withSteps({ type: 'transform', config: { expression: '$' } })
    const call = { args: { a: 1 }, query: { q: 2 }, body: { b: 3 }, id: 'i' }
    const account = { context: { c: 4 }, credentials: { api_key: 'canary' }, environmentVariables: { V: 'canary' } }
    const { outcome: end } = await run(config, call, account)
    expect(end).toMatchObject({ result: { ...call, context: { c: 4 } } })
    expect(JSON.stringify(end)).not.toContain('canary')
  })

  test.each<[string, Json, number]>([
    ['a truthy run_if', 'args.on', 2],
    ['a run_if over results', '$previous.n = 1', 2],
    ['a falsy run_if', 'args.off', 1],
    ['a run_if that finds nothing', '$steps.nothing.there', 1],
  ])('%s decides whether a step runs', async (_what, runIf, ran) => {
    const config = withSteps(
      { type: 'transform', config: '{"n": 1}' },
      { type: 'transform', config: '{"n": $previous.n + 1}', run_if: runIf },
    )
    const { outcome: end, steps } = await run(config, { args: { on: true, off: false } })
    expect(end).toMatchObject({ kind: 'ok', result: { n: ran } })
    expect(steps).toHaveLength(ran)
  })

  test('that are all skipped come to nothing', async () => {
    const { outcome: end, steps } = await run(withSteps({ type: 'transform', config: '1', run_if: 'false' }))
    expect(end).toMatchObject({ kind: 'ok', result: null })
    expect(steps).toEqual([])
  })

  test('a single step needs no list', async () => {
    expect(await resultOf({ actions: { run: { type: 'transform', config: 'args.n * 2' } } }, { args: { n: 21 } })).toBe(
      42,
    )
  })

  test('a form cannot run', async () => {
    const { outcome: end } = await run(withSteps({ type: 'form', config: { fields: [{ name: 'site' }] } }))
    expect(end).toMatchObject({ kind: 'failed', failure: { reason: 'DEFINITION_INVALID' } })
  })
})

describe('update_context', () => {
  test.each<[string, Json | undefined, JsonObject]>([
    [
      'an object with placeholders',
      { site: '{{$previous.id}}', fixed: 1, gone: null },
      { site: 7, fixed: 1, gone: null },
    ],
    ['an expression', '{"site": $previous.id}', { site: 7 }],
    ['an expression in the long form', { expression: '{"site": context.old}' }, { site: 'o' }],
    ['the result before', undefined, { id: 7 }],
  ])('takes %s', async (_what, config, patch) => {
    const update: JsonObject = { type: 'update_context', ...(config === undefined ? {} : { config }) }
    const { outcome: end } = await run(
      withSteps({ type: 'transform', config: '{"id": 7}' }, update),
      {},
      { context: { old: 'o' } },
    )
    expect(end).toMatchObject({ kind: 'ok', result: patch })
    expect(kept).toEqual([patch])
  })

  test('is seen by later steps at once, and kept when all have passed', async () => {
    script({ request: 'GET /sites/7?old=', answer: { json: {} } })
    const config = withSteps(
      { type: 'update_context', config: { site: 7, old: null } },
      request('/sites/{{context.site}}', { query: { old: '{{context.old?:}}' } }),
      { type: 'update_context', config: '{"again": context.site}' },
    )
    await run(config, {}, { context: { old: 'o' } })
    expect(kept).toEqual([{ site: 7, old: null, again: 7 }])
  })

  test('is seen by a request that is repeated with renewed credentials', async () => {
    script(
      { request: 'GET /sites/7', headers: { 'x-key': 'old' }, answer: { status: 401, json: {} } },
      { request: 'GET /sites/7', headers: { 'x-key': 'new' }, answer: { json: {} } },
      { request: 'GET /next/7', headers: { 'x-key': 'new' }, answer: { json: {} } },
    )
    const account = {
      context: {},
      credentials: { api_key: 'old' },
      environmentVariables: {},
      isSandbox: false,
      id: 'a',
    }
    renewed = { ...account, credentials: { api_key: 'new' } }
    const config = withSteps(
      { type: 'update_context', config: { site: 7 } },
      request('/sites/{{context.site}}'),
      request('/next/{{context.site}}'),
    )
    const { outcome: end } = await run({ ...config, headers: { 'X-Key': '{{api_key}}' } }, {}, account)
    expect(end.kind).toBe('ok')
  })

  test('of an action that fails is not kept', async () => {
    script({ request: 'GET /x', answer: { status: 404, json: {} } })
    const { outcome: end } = await run(withSteps({ type: 'update_context', config: { site: 7 } }, request('/x')))
    expect(end.kind).toBe('upstream_error')
    expect(kept).toEqual([])
  })

  test('that the account cannot take fails the action', async () => {
    rejection = new Failure('CONTEXT_KEY_RESERVED', 'oauth is a name that the runtime owns')
    const { outcome: end } = await run(withSteps({ type: 'update_context', config: { oauth: 7 } }))
    expect(end).toEqual({ kind: 'failed', failure: rejection })
  })

  test.each(['"text"', '[1]', '7'])('of %s fails', async (config) => {
    const { outcome: end } = await run(withSteps({ type: 'update_context', config }))
    expect(end).toMatchObject({ kind: 'failed', failure: { reason: 'EXPRESSION_FAILED' } })
  })
})

describe('a step that fails', () => {
  const TIME = { startedAt: NOW, durationMs: 0 }

  test('ends the action, and every step until there is reported', async () => {
    script(
      { request: 'GET /one', answer: { json: { id: 1 } } },
      { request: 'GET /two', answer: { status: 422, json: { message: 'no such thing' } } },
    )
    const { outcome: end, steps } = await run(
      withSteps({ ...request('/one'), name: 'first' }, request('/two'), request('/three')),
    )
    expect(end).toMatchObject({ kind: 'upstream_error', status: 422, message: 'no such thing' })
    expect(steps).toEqual([
      { name: 'first', type: 'request', ok: true, status: 200, ...TIME, error: undefined },
      {
        name: 'request_2',
        type: 'request',
        ok: false,
        status: 422,
        ...TIME,
        error: 'the upstream answered 422: no such thing',
      },
    ])
  })

  test('for want of a limit is a rate limit of the call', async () => {
    script({ request: 'GET /x', answer: { status: 429, headers: { 'retry-after': '7' }, json: {} } })
    const { outcome: end, steps } = await run(withSteps(request('/x')))
    expect(end).toMatchObject({ kind: 'rate_limited', retryAfterSeconds: 7 })
    expect(steps).toMatchObject([{ ok: false, status: 429, error: 'the upstream asks to wait 7 seconds' }])
  })

  test('in its expression names it', async () => {
    const { outcome: end, steps } = await run(withSteps({ type: 'transform', config: '$number("x")' }))
    expect(end).toMatchObject({ kind: 'failed', failure: { reason: 'EXPRESSION_FAILED' } })
    expect(steps[0]?.error).toContain('transform: ')
  })

  test('contains no credentials, variables or tokens, even when the upstream repeats them', async () => {
    const secrets = { key: 'canary-key', variable: 'canary-variable', token: 'canary-token-of-a-step' }
    script(
      { request: 'GET /login', answer: { json: { token: secrets.token } } },
      { request: 'GET /x', answer: { status: 400, json: { message: `bad ${Object.values(secrets).join(' ')}` } } },
    )
    const account = {
      credentials: { api_key: secrets.key, oauth: { token: { access_token: 'canary-key-and-more' } } },
      environmentVariables: { API_SECRET: secrets.variable },
    }
    const { steps } = await run(withSteps(request('/login'), request('/x')), {}, account)
    expect(steps[1]?.error).toBe('the upstream answered 400: bad *** *** ***')
  })
})

describe('calling an action', () => {
  const CONFIG = {
    actions: {
      search: request('/search', { method: 'POST', response_path: 'found' }),
      look: request('/look', { response_path: 'found' }),
      validation: request('/me'),
      refresh_token: request('/token', { method: 'POST' }),
    },
  }

  test('gives the outcome of its last step', async () => {
    script({ request: 'POST /search', answer: { status: 201, json: { found: [1, 2] } } })
    expect(await engine.call(CONFIG, action('search'))).toMatchObject({ kind: 'ok', status: 201, result: [1, 2] })
  })

  test('as a list gives one page', async () => {
    script({ request: 'GET /look', answer: { json: { found: [1, 2] } } })
    expect(await collect(engine.pages(CONFIG, action('look')))).toMatchObject([
      { kind: 'page', page: 1, records: [1, 2], state: null, stopReason: 'unpaginated' },
    ])
  })

  test('as a list runs again after a rate limit', async () => {
    script(
      { request: 'GET /look', answer: { status: 429, json: {} } },
      { request: 'GET /look', answer: { json: { found: 1 } } },
    )
    const steps = await collect(engine.pages(CONFIG, action('look')))
    expect(steps).toMatchObject([{ kind: 'rate_limited' }, { kind: 'page', records: [1] }])
  })

  test('fails when a step is rejected', async () => {
    const missing = { actions: { run: request('/{{args.missing}}') } }
    expect(await failureOf(engine.call(missing, action('run')))).toContain('PLACEHOLDER_UNRESOLVED')
  })

  test.each([
    ['serch', 'METHOD_NOT_DEFINED: the definition has no action serch, did you mean search?'],
    ['validation', 'METHOD_NOT_DEFINED: the action validation belongs to connecting an account: it cannot be called'],
    ['post_install', 'METHOD_NOT_DEFINED: the action post_install belongs to connecting an account'],
    ['validatio', 'METHOD_NOT_DEFINED: the definition has no action validatio'],
  ])('named %s is refused', async (name, message) => {
    expect(await failureOf(engine.call(CONFIG, action(name)))).toContain(message)
  })

  test('that writes is rejected for sandbox accounts, before its first step', async () => {
    const config = withSteps(request('/look'), request('/x', { method: 'DELETE' }))
    const refused = await failureOf(engine.call(config, action('run'), { isSandbox: true }))
    expect(refused).toContain('SANDBOX_ACCOUNT_READ_ONLY')
    expect(engine.upstream.requests).toEqual([])
  })

  test('that only reads is open to sandbox accounts', async () => {
    script({ request: 'GET /look', answer: { json: {} } })
    expect((await engine.call(CONFIG, action('look'), { isSandbox: true })).kind).toBe('ok')
  })

  test('to renew credentials may write for sandbox accounts, and asks for no renewal itself', async () => {
    script({ request: 'POST /token', answer: { status: 401, json: {} } })
    renewed = { id: 'a', context: {}, credentials: {}, environmentVariables: {}, isSandbox: true }
    const { outcome: end } = await engine.runAction(CONFIG, action('refresh_token'), { isSandbox: true })
    expect(end).toMatchObject({ kind: 'upstream_error', status: 401 })
  })
})

test('the proof of a credential is an action of one step', async () => {
  script({ request: 'GET /me', answer: { status: 401, json: { message: 'bad k-canary' } } })
  renewed = { id: 'a', context: {}, credentials: {}, environmentVariables: {}, isSandbox: false }
  const config = { credentials: { api_key: { config: { verification: { path: '/me' } } } } }
  const target = { kind: 'verification', credential: 'api_key' } as const
  const { outcome: end, steps } = await engine.runAction(config, { target }, { credentials: { api_key: 'k-canary' } })
  expect(end).toMatchObject({ kind: 'upstream_error', status: 401 })
  expect(steps).toMatchObject([
    { name: 'verification', type: 'request', ok: false, error: 'the upstream answered 401: bad ***' },
  ])
})
