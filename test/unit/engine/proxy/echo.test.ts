import { describe, expect, test } from 'vitest'
import type { AccountAccess } from '../../../../src/engine/proxy/index.ts'
import { Failure } from '../../../../src/foundation/base/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { describeError } from '../../../../src/foundation/telemetry/index.ts'
import { SECRET_ENCODINGS } from '../../../support/secret-encodings.ts'
import type { ScriptedAnswer } from '../../../support/upstream.ts'
import { collect, on, startEngine } from './engine.ts'

const noted: unknown[] = []
const stored: JsonObject[] = []
let renewed: AccountAccess | undefined
const accountPort = {
  refresh: async () => renewed,
  report: async (_access: AccountAccess, sign: unknown) => void noted.push(sign),
  updateContext: async (_access: AccountAccess, patch: JsonObject) => void stored.push(patch),
}
const engine = await startEngine({ credentialRefresher: accountPort, accountReporter: accountPort })
const script = engine.upstream.script

const SECRET = 'canary/of+the account&1'
const account = { credentials: { api_key: SECRET } }
const GET = on('things', 'get')
const config = (more: JsonObject = {}): JsonObject => ({
  authorization: { format: 'header', config: { header_name: 'x-key', header_value: '{{api_key}}' } },
  retry: { max_attempts: 1 },
  resources: { things: { get: { path: '/x' }, list: { path: '/x', pagination: null } } },
  ...more,
})

describe('a third party that repeats what it was sent', () => {
  test.each(Object.entries(SECRET_ENCODINGS))('%s: in no part of the error', async (_name, spell) => {
    const echo = `bad ${spell(SECRET)}`
    const header = encodeURIComponent(SECRET)
    const answer = {
      status: 422,
      headers: { 'x-echo': header, 'ratelimit-limit': header },
      json: { message: echo, echo: [echo] },
    }
    script({ request: 'GET /x', answer, times: 2 })
    const outcome = await engine.call(config(), GET, account)
    expect(outcome).toMatchObject({
      kind: 'upstream_error',
      message: 'bad ***',
      body: { message: 'bad ***', echo: ['bad ***'] },
      headers: { 'x-echo': '***' },
      rateLimit: { limit: '***' },
    })
    const [page] = await collect(engine.pages(config(), on('things', 'list'), null, account))
    expect(page).toMatchObject({ kind: 'upstream_error', message: 'bad ***' })
  })

  test('in a body that asks to wait', async () => {
    script({ request: 'GET /x', answer: { status: 429, json: { message: SECRET } } })
    const outcome = await engine.call(config(), GET, account)
    expect(outcome).toMatchObject({ kind: 'rate_limited', body: { message: '***' } })
  })

  test('in what a definition makes of the answer', async () => {
    const error_expression =
      '{"status": 409, "message": body.e, "metadata": {"m": body.e}, "headers": {"x-e": body.e}, "result": {"r": body.e}}'
    script({ request: 'GET /x', answer: { json: { e: SECRET } } })
    expect(await engine.call(config({ error_expression }), GET, account)).toMatchObject({
      kind: 'upstream_error',
      message: '***',
      metadata: { m: '***' },
      result: { r: '***' },
      body: { e: '***' },
      headers: { 'x-e': '***' },
      ownHeaders: { 'x-e': '***' },
    })
  })

  test.each<[string, JsonObject, ScriptedAnswer]>([
    ['in a redirect', {}, { status: 302, headers: { location: `http://${SECRET.slice(0, 6)}.invalid:1/` } }],
    ['in a body that does not parse', {}, { headers: { 'content-type': 'application/json' }, text: SECRET }],
    ['to an expression that fails', { error_expression: '$error(body.e)' }, { json: { e: SECRET } }],
  ])('%s: in no failure, and in nothing that is logged of it', async (_name, more, answer) => {
    script({ request: 'GET /x', answer })
    const secrets = { api_key: SECRET, host: SECRET.slice(0, 6) }
    const failure = await engine.call(config(more), GET, { credentials: secrets }).then(
      () => undefined,
      (error: unknown) => error,
    )
    expect(failure).toBeInstanceOf(Failure)
    expect(JSON.stringify(describeError(failure))).not.toContain(SECRET.slice(0, 6))
  })

  test('through a stream', async () => {
    script({ request: 'GET /x', answer: { status: 400, json: { message: SECRET } } })
    const target = { kind: 'path', verb: 'GET', path: '/x' } as const
    expect(await engine.stream(config(), { target }, account)).toMatchObject({
      message: '***',
      body: { message: '***' },
    })
  })

  test('that was computed for the request', async () => {
    const authorization = { format: 'jwt', config: { algorithm: 'HS256', key: '{{api_key}}', claims: {} } }
    script({ request: 'GET /x', answer: { json: {} } })
    await engine.call(config({ authorization }), GET, account)
    const sent = engine.upstream.requests.at(-1)?.headers.authorization ?? ''
    expect(sent).toMatch(/^Bearer ey/)
    script({ request: 'GET /x', answer: { status: 400, json: { message: `bad ${sent}, ${sent.slice(7)}` } } })
    expect(await engine.call(config({ authorization }), GET, account)).toMatchObject({ message: 'bad Bearer ***, ***' })
  })

  test('that was renewed meanwhile, in what is reported', async () => {
    const access = { id: 'a', isSandbox: false, context: {}, environmentVariables: {} }
    renewed = { ...access, credentials: { api_key: 'the-renewed-key' } }
    script(
      { request: 'GET /x', answer: { status: 401, json: {} } },
      { request: 'GET /x', answer: { status: 401, json: { message: `bad ${SECRET} and the-renewed-key` } } },
    )
    await engine.call(config(), GET, account)
    expect(noted.at(-1)).toEqual({ kind: 'unauthorized', message: 'bad *** and ***' })
    renewed = undefined
  })

  test('into the context, which anybody may read: an error names the key, and nothing is stored', async () => {
    script({ request: 'GET /x', answer: { json: { org: 'acme', mine: SECRET } } })
    const steps = [{ type: 'request', config: { path: '/x' } }, { type: 'update_context' }]
    const target = { kind: 'action', action: 'run' } as const
    const before = stored.length
    const { outcome } = await engine.runAction(config({ actions: { run: { steps } } }), { target }, account)
    expect(outcome).toMatchObject({
      kind: 'failed',
      failure: { reason: 'DEFINITION_INVALID', publicMessage: expect.stringContaining('a credential as mine;') },
    })
    expect(stored).toHaveLength(before)
  })

  test('beside ids and addresses, which are stored as they are', async () => {
    const token = {
      access_token: SECRET,
      team_id: 'T9TK3CUKW',
      owner: 'https://api.example.com/users/AAAAAAAAAAAAAAAA',
      hub: 12,
    }
    script({ request: 'GET /x', answer: { json: { team: 'T9TK3CUKW', hub: 12, user: token.owner } } })
    const steps = [{ type: 'request', config: { path: '/x' } }, { type: 'update_context' }]
    const target = { kind: 'action', action: 'run' } as const
    await engine.runAction(
      config({ actions: { run: { steps } } }),
      { target },
      { credentials: { api_key: SECRET, oauth: { token } } },
    )
    expect(stored.at(-1)).toEqual({ team: 'T9TK3CUKW', hub: 12, user: token.owner })
  })

  test('in what it states about its limit, also with success', async () => {
    const headers = {
      'ratelimit-limit': encodeURIComponent(SECRET),
      'ratelimit-remaining': '12',
      'ratelimit-reset': '60;w=1',
    }
    script({ request: 'GET /x', answer: { headers, json: {} }, times: 2 })
    const rateLimit = { limit: '***', remaining: '12', reset: '60;w=1' }
    expect(await engine.call(config(), GET, account)).toMatchObject({ kind: 'ok', rateLimit })
    const target = { kind: 'path', verb: 'GET', path: '/x' } as const
    const streamed = await engine.stream(config(), { target }, account)
    expect(streamed).toMatchObject({ kind: 'stream', rateLimit })
    if (streamed.kind === 'stream') streamed.body.destroy()
  })

  test.each<[string, JsonObject, string, string]>([
    [
      'put on by authorization',
      { authorization: { format: 'query', config: { params: { key: '{{api_key}}' } } } },
      'key',
      'key',
    ],
    ['named by the definition', { query: { key: '{{api_key}}' } }, 'key', 'key'],
    ['under a name of its own', {}, '', 'token'],
  ])('in a next link, %s: not in the state, and sent again', async (_name, more, sent, linked) => {
    const things = { list: { path: '/x', pagination: { format: 'link_header' } } }
    const listing = config({ ...more, resources: { things } })
    const spelled = encodeURIComponent(SECRET)
    const own = sent === '' ? '' : `${sent}=${spelled}`
    const link = `</x?after=a%2Fb&${linked}=${spelled}>; rel=next`
    script(
      { request: `GET /x${own && `?${own}`}`, answer: { headers: { link }, json: [1] } },
      { request: `GET /x?after=a%2Fb&${linked}=${spelled}`, answer: { json: [2] } },
    )
    const [first] = await collect(engine.pages(listing, on('things', 'list'), null, account), 1)
    expect(JSON.stringify(first?.state)).toMatch(new RegExp(`after=a%2Fb&${linked}=\\*{3}[0-9a-f]{12}"`))
    const [second] = await collect(engine.pages(listing, on('things', 'list'), first?.state, account))
    expect(second).toMatchObject({ kind: 'page', records: [2], state: null })
  })

  test('that an earlier step was given, in what is reported', async () => {
    script(
      { request: 'POST /login', answer: { json: { session: 'the-session-of-a-login' } } },
      { request: 'GET /x', answer: { status: 401, json: { message: 'bad the-session-of-a-login' } } },
    )
    const steps = [
      { type: 'request', config: { method: 'POST', path: '/login' } },
      { type: 'request', config: { path: '/x' } },
    ]
    const target = { kind: 'action', action: 'run' } as const
    await engine.runAction(config({ actions: { run: { steps } } }), { target }, account)
    expect(noted.at(-1)).toEqual({ kind: 'unauthorized', message: 'bad ***' })
  })

  test('with success is not altered: that is the data of the customer', async () => {
    script({ request: 'GET /x', answer: { json: { key: SECRET } } })
    expect(await engine.call(config(), GET, account)).toMatchObject({ kind: 'ok', result: { key: SECRET } })
  })
})
