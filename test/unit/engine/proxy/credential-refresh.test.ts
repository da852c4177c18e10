import { beforeEach, describe, expect, test } from 'vitest'
import type {
  AccountAccess,
  AccountReporter,
  AccountSignal,
  CredentialRefresher,
} from '../../../../src/engine/proxy/index.ts'
import { Failure } from '../../../../src/foundation/base/index.ts'
import type { ScriptedExchange } from '../../../support/upstream.ts'
import { collect, failureOf, on, startEngine } from './engine.ts'

/** Refreshes to `token-1`, `token-2`, … until there are no more, and records the reports. */
const kept = { renewals: 0, renewable: 1, isAway: false, signs: [] as AccountSignal[], refused: [] as string[] }
const accountPort: CredentialRefresher & AccountReporter = {
  refresh: async (access) => {
    if (kept.isAway) throw new Failure('TOKEN_REQUEST_FAILED', 'the token endpoint does not answer')
    kept.refused.push(String(access.credentials.api_key))
    if (kept.renewals === kept.renewable) return undefined
    kept.renewals += 1
    return { ...access, credentials: { api_key: `token-${kept.renewals}` } }
  },
  report: async (_access, sign) => {
    kept.signs.push(sign)
  },
  updateContext: async () => {},
}
const engine = await startEngine({ credentialRefresher: accountPort, accountReporter: accountPort })

beforeEach(() => {
  Object.assign(kept, { renewals: 0, renewable: 1, isAway: false, signs: [], refused: [] })
})

const CONFIG = {
  authorization: { format: 'bearer' },
  credentials: { api_key: { config: { verification: { path: '/me' } } } },
  pagination: { format: 'page', config: { page_key: 'page' } },
  resources: {
    things: { get: { path: '/things/1' }, list: { path: '/things' }, create: { method: 'POST', path: '/things' } },
  },
}
const GET = on('things', 'get')
const ACCOUNT: Partial<AccountAccess> = { credentials: { api_key: 'token-0' } }

function exchange(request: string, token: string, answer: ScriptedExchange['answer']): ScriptedExchange {
  return { request, headers: { authorization: `Bearer ${token}` }, answer }
}

describe('a credential that is rejected', () => {
  test('is renewed once, and the call repeated with the new one, also when it writes', async () => {
    engine.upstream.script(
      exchange('POST /things', 'token-0', { status: 401 }),
      exchange('POST /things', 'token-1', { status: 201, json: { id: 2 } }),
    )
    const outcome = await engine.call(CONFIG, { ...on('things', 'create'), body: {} }, ACCOUNT)
    expect(outcome).toMatchObject({ kind: 'ok', result: { id: 2 } })
    expect(kept).toMatchObject({ refused: ['token-0'], signs: [] })
  })

  test('and rejected again reports that the account needs to be connected again', async () => {
    kept.renewable = 9
    engine.upstream.script(
      exchange('GET /things/1', 'token-0', { status: 401 }),
      exchange('GET /things/1', 'token-1', { status: 401, json: { message: 'revoked' } }),
    )
    expect(await engine.call(CONFIG, GET, ACCOUNT)).toMatchObject({ kind: 'upstream_error', status: 401 })
    expect(kept).toMatchObject({ refused: ['token-0'], signs: [{ kind: 'unauthorized', message: 'revoked' }] })
  })

  test('and cannot be renewed says so after one request', async () => {
    kept.renewable = 0
    engine.upstream.script(exchange('GET /things/1', 'token-0', { status: 401 }))
    await engine.call(CONFIG, GET, ACCOUNT)
    expect(kept.signs).toEqual([{ kind: 'unauthorized', message: 'the upstream answered 401' }])
  })

  test.each([
    ['a success may hide it', { json: { ok: false } }, 'body.ok = false ? {"status": 401}'],
    ['another status may stand for it', { status: 403 }, 'status = 403 ? {"status": 403, "action": "refresh_token"}'],
  ])('%s', async (_what, answer, error_expression) => {
    engine.upstream.script(
      exchange('GET /things/1', 'token-0', answer),
      exchange('GET /things/1', 'token-1', { json: { id: 1 } }),
    )
    expect(await engine.call({ ...CONFIG, error_expression }, GET, ACCOUNT)).toMatchObject({ kind: 'ok' })
  })

  test('is not renewed where the definition says that only connecting again helps', async () => {
    const error_expression = 'status = 401 ? {"status": 401, "action": "needs_reauth", "message": "gone"}'
    engine.upstream.script(exchange('GET /things/1', 'token-0', { status: 401 }))
    await engine.call({ ...CONFIG, error_expression }, GET, ACCOUNT)
    expect(kept).toMatchObject({ refused: [], signs: [{ kind: 'unauthorized', message: 'gone' }] })
  })

  test('is what a verification is there to find out: nothing is renewed or noted', async () => {
    engine.upstream.script(exchange('GET /me', 'token-0', { status: 401 }))
    await engine.call(CONFIG, { target: { kind: 'verification', credential: 'api_key' } }, ACCOUNT)
    expect(kept).toMatchObject({ refused: [], signs: [] })
  })

  test('in the middle of a list: later pages go on with the new one', async () => {
    engine.upstream.script(
      exchange('GET /things?page=1', 'token-0', { json: [1] }),
      exchange('GET /things?page=2', 'token-0', { status: 401 }),
      exchange('GET /things?page=2', 'token-1', { json: [2] }),
      exchange('GET /things?page=3', 'token-1', { json: [] }),
    )
    const pages = await collect(engine.pages(CONFIG, on('things', 'list'), null, ACCOUNT))
    expect(pages.map((step) => step.kind)).toEqual(['page', 'page', 'page'])
    expect(kept.refused).toEqual(['token-0'])
  })

  test('while the token endpoint is unavailable fails the call and reports nothing about the account', async () => {
    kept.isAway = true
    engine.upstream.script(exchange('GET /things/1', 'token-0', { status: 401 }))
    expect(await failureOf(engine.call(CONFIG, GET, ACCOUNT))).toContain('TOKEN_REQUEST_FAILED')
    expect(kept.signs).toEqual([])
  })
})

describe('an answer may say something about the account', () => {
  const ignoring = { error_expression: 'status = 403 ? {"status": 403, "action": "ignore"}' }
  const limiting = { rate_limit: { is_rate_limited: 'status = 403' } }

  test.each([
    ['403 is noted with what was called', {}, 403, [{ kind: 'forbidden', resource: 'things', method: 'get' }]],
    ['a harmless 403 is not', ignoring, 403, []],
    ['a 403 that means a rate limit is not', limiting, 403, []],
    ['404 is not', {}, 404, []],
  ])('%s', async (_what, settings, status, signs) => {
    engine.upstream.script(exchange('GET /things/1', 'token-0', { status }))
    await engine.call({ ...CONFIG, ...settings }, { ...GET, limits: { attemptsMax: 1 } }, ACCOUNT)
    expect(kept.signs).toEqual(signs)
  })

  test('403 on a path that no method describes is named by path and verb', async () => {
    engine.upstream.script(exchange('PATCH /a/b?secret=1', 'token-0', { status: 403 }))
    await engine.call(CONFIG, { target: { kind: 'path', verb: 'PATCH', path: '/a/b?secret=1' } }, ACCOUNT)
    expect(kept.signs).toEqual([{ kind: 'forbidden', resource: '/a/b', method: 'PATCH' }])
  })

  test('a success is worth a note only of an account that was said to need to be connected again, and once', async () => {
    engine.upstream.script(
      exchange('GET /things/1', 'token-0', { json: {} }),
      exchange('GET /things?page=1', 'token-0', { json: [1] }),
      exchange('GET /things?page=2', 'token-0', { json: [] }),
    )
    await engine.call(CONFIG, GET, ACCOUNT)
    expect(kept.signs).toEqual([])
    await collect(engine.pages(CONFIG, on('things', 'list'), null, { ...ACCOUNT, unauthorizedSince: new Date() }))
    expect(kept.signs).toEqual([{ kind: 'worked' }])
  })
})
