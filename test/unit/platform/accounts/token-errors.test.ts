import { describe, expect, it } from 'vitest'
import { Failure } from '../../../../src/foundation/base/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { listIntegratedAccountHistory } from '../../../../src/platform/accounts/index.ts'
import { CLIENT_CREDENTIALS, errorResponse, OAUTH2, type TokenServerAnswer, tokensFixture } from './token-fixture.ts'

const fixture = await tokensFixture()
const { tx, own, server, pass, process, addClient, addConsent, statusOf, tokenRow, alterToken } = fixture

const HOUR = 3_600_000
const CONSENT = { access_token: 'first-token', refresh_token: 'first-refresh', expires_in: 3600 }
const html = (status: number): TokenServerAnswer => ({ status, text: '<html>Sorry</html>' })
const code = (error: string, status = 400) => errorResponse(status, { error })

const refused = (error: string, error_description: string, status = 400) =>
  errorResponse(status, { error, error_description })
const facebook = (error: JsonObject) => errorResponse(400, { error: { type: 'OAuthException', ...error } })

/** What an answer is, and what becomes of the account: whose matter it is and what its callers get. */
const MATRIX: readonly [what: string, answer: TokenServerAnswer, verdict: keyof typeof EXPECTED][] = [
  ['a grant that is revoked', code('invalid_grant'), 'account'],
  ['a consent that is missing', code('consent_required'), 'account'],
  ['a customer who is asked for', code('interaction_required'), 'account'],
  ['access that is denied', code('access_denied', 403), 'account'],
  ['an error in a success', code('bad_refresh_token', 200), 'account'],
  ['an error as a form', { status: 400, text: 'error=invalid_grant&error_description=gone' }, 'account'],
  ['an unknown code that names the token', code('token_is_weird'), 'unclear'],
  ['a text that names the token', errorResponse(400, { message: 'Invalid refresh token' }), 'account'],
  ['a refresh token that is invalid', refused('invalid_request', 'the refresh token is invalid'), 'account'],
  ['the same as 401', refused('invalid_request', 'The refresh token is invalid.', 401), 'account'],
  ['the same as a success', refused('invalid_request', 'The refresh token is invalid.', 200), 'account'],
  ['a token that ended', refused('bad_request', 'Token has been expired or revoked.'), 'account'],
  ['a revoked token', { status: 200, text: '{"ok":false,"error":"token_revoked"}' }, 'account'],
  ['an account that was closed', { status: 200, text: '{"ok":false,"error":"account_inactive"}' }, 'account'],
  ['a session that ended', facebook({ code: 190, message: 'Session has expired on Friday' }), 'account'],
  ['an error as an object', errorResponse(400, { error: { code: 'invalid_grant', message: 'no' } }), 'account'],
  ['an unknown client', code('invalid_client', 401), 'integration'],
  ['an unknown client in a success', code('incorrect_client_credentials', 200), 'integration'],
  ['a client that is not let in', errorResponse(401, {}), 'integration'],
  ['a request that is wrong', code('invalid_request'), 'integration'],
  ['a scope that does not exist', code('invalid_scope'), 'integration'],
  ['a path that does not exist', errorResponse(404, { message: 'not found' }), 'integration'],
  [
    'a redirect',
    { status: 302, text: '<html>', headers: { location: 'https://elsewhere.example.com' } },
    'integration',
  ],
  ['a success without a token', errorResponse(200, { token: 'x' }), 'integration'],
  ['an address that is not allowed', new Failure('EGRESS_BLOCKED', 'not there'), 'integration'],
  ['a client of another name', { status: 200, text: '{"ok":false,"error":"bad_client_secret"}' }, 'integration'],
  ['a parameter that lacks', refused('invalid_request', 'Missing parameter: redirect_uri'), 'integration'],
  ['a server that is down', html(503), 'neither'],
  ['a server that fails in a success', { status: 200, text: '{"ok":false,"error":"internal_error"}' }, 'neither'],
  ['a fatal error in a success', { status: 200, text: '{"ok":false,"error":"fatal_error"}' }, 'neither'],
  ['a limit in a success', { status: 200, text: '{"ok":false,"error":"ratelimited"}' }, 'neither'],
  ['a service that is away', { status: 200, text: '{"ok":false,"error":"service_unavailable"}' }, 'neither'],
  ['an error that says it is transient', facebook({ code: 2, is_transient: true }), 'neither'],
  ['a limit as 403', code('rate_limit_exceeded', 403), 'neither'],
  ['a limit in words', errorResponse(403, { message: 'Rate limit exceeded' }), 'neither'],
  ['a request to come back', refused('invalid_request', 'Please try again later'), 'neither'],
  ['an error without a code', errorResponse(400, { message: 'no' }), 'unclear'],
  ['an error of a kind of its own', code('odd_things_happened'), 'unclear'],
  ['a server that failed, whatever it says', code('invalid_grant', 500), 'neither'],
  ['a server that says it is busy', code('temporarily_unavailable'), 'neither'],
  ['a server that asks to wait', errorResponse(429, { error: 'slow' }), 'neither'],
  ['a page of a firewall', html(403), 'neither'],
  ['a page as a success', html(200), 'neither'],
  ['an empty answer', { status: 200, text: '' }, 'neither'],
  ['no connection', new Failure('UPSTREAM_UNREACHABLE', 'away'), 'neither'],
  ['no answer in time', new Failure('DEADLINE_EXCEEDED', 'late'), 'neither'],
  ['an answer that is too large', new Failure('UPSTREAM_INVALID_RESPONSE', 'large'), 'neither'],
]

const EXPECTED = {
  account: { status: 'needs_reauth', reason: 'CREDENTIALS_INVALID', kind: 'grant_refused', pauseMs: 60_000 },
  integration: { status: 'active', reason: 'TOKEN_REQUEST_FAILED', kind: 'client_refused', pauseMs: 30_000 },
  neither: { status: 'active', reason: 'TOKEN_REQUEST_FAILED', kind: 'transient', pauseMs: 5_000 },
  unclear: { status: 'active', reason: 'TOKEN_REQUEST_FAILED', kind: 'unclear', pauseMs: 5_000 },
} as const

describe('what a refresh is answered', () => {
  it.each(MATRIX)('%s', async (_, answer, verdict) => {
    const { status, reason, kind, pauseMs } = EXPECTED[verdict]
    const id = await addConsent(CONSENT)
    pass(HOUR)
    server.answer(answer)
    await expect(process().load(id)).rejects.toMatchObject({ reason, metadata: { cause: kind } })
    expect(await statusOf(id)).toMatchObject({ status })
    expect(await tokenRow(id)).toMatchObject({ version: 1, failures: 1, leaseId: null, error: { kind } })
    const failure = await process()
      .load(id)
      .catch((error) => error)
    expect(failure).toMatchObject({ reason })
    expect(failure.retryAfterSeconds).toBeGreaterThan(pauseMs / 2_000 - 2)
    expect(failure.retryAfterSeconds).toBeLessThanOrEqual(pauseMs / 1_000)
    expect(server.asked).toHaveLength(1)
  })
})

describe('a token error', () => {
  it('is one step of the history, with what was said', async () => {
    const id = await addConsent(CONSENT)
    pass(HOUR)
    server.answer(errorResponse(400, { error: 'invalid_grant', error_description: 'The user left.' }))
    await Promise.allSettled([process(), process(), process()].map(({ load }) => load(id)))
    const [latest, before] = await listIntegratedAccountHistory(tx, own, id, { before: undefined, limit: 2 })
    const lastError = expect.stringContaining('invalid_grant: The user left.')
    expect(latest).toMatchObject({ fromStatus: 'active', toStatus: 'needs_reauth', cause: 'refresh_failed', lastError })
    expect(before).toMatchObject({ cause: 'created' })
  })

  it('never repeats a secret, whatever the server does', async () => {
    const id = await addConsent(CONSENT)
    const basic = Buffer.from('app:the-clients-secret').toString('base64')
    pass(HOUR)
    const error_description = `first-refresh of first-token by Basic ${basic}`
    server.answer(errorResponse(400, { error: 'invalid_grant', error_description }))
    await expect(process().load(id)).rejects.toMatchObject({
      publicMessage: expect.stringContaining('(invalid_grant: *** of *** by Basic ***)'),
    })
    const { lastError } = await statusOf(id)
    for (const secret of ['first-refresh', 'first-token', basic]) {
      expect(lastError).not.toContain(secret)
      expect(JSON.stringify(await tokenRow(id))).not.toContain(secret)
    }
  })

  it("becomes the account's when its cause stays unclear", async () => {
    const id = await addConsent(CONSENT)
    pass(HOUR)
    for (let failures = 1; failures <= 16; failures += 1) {
      expect(await statusOf(id)).toMatchObject({ status: 'active' })
      server.answer(errorResponse(400, { message: 'no' }))
      await process()
        .load(id)
        .catch(() => undefined)
      expect(await tokenRow(id)).toMatchObject({ failures })
      await alterToken(id, `retry_at = now() - interval '1 second'`)
    }
    expect(await statusOf(id)).toMatchObject({
      status: 'needs_reauth',
      lastError: expect.stringContaining('no; 16 requests in a row failed'),
    })
  })

  it.each([
    ['of its client', code('invalid_client', 401)],
    ['of unclear cause', errorResponse(400, { message: 'no' })],
  ])("%s becomes the account's when other accounts of the installation get tokens meanwhile", async (_, error) => {
    const [id, other] = [await addConsent(CONSENT), await addConsent({ ...CONSENT, refresh_token: 'other-refresh' })]
    pass(HOUR)
    const fail = async () => {
      server.answer(error)
      await process()
        .load(id)
        .catch(() => undefined)
      await alterToken(id, `retry_at = now() - interval '1 second'`)
    }
    for (let count = 0; count < 3; count++) await fail()
    expect(await statusOf(id)).toMatchObject({ status: 'active' })
    server.answer({ access_token: 'second-token' })
    await process().load(other)
    await fail()
    expect(await statusOf(id)).toMatchObject({
      status: 'needs_reauth',
      lastError: expect.stringContaining(
        '4 requests in a row failed, while other accounts of the installation got tokens',
      ),
    })
    expect(await statusOf(other)).toMatchObject({ status: 'active' })
  })

  it('waits as long as the server asks to', async () => {
    const id = await addConsent(CONSENT)
    pass(HOUR)
    server.answer({ status: 429, text: '{}', headers: { 'retry-after': '300' } })
    await expect(process().load(id)).rejects.toMatchObject({ retryAfterSeconds: 300 })
  })

  it('is forgotten with the next token', async () => {
    const id = await addConsent(CONSENT)
    pass(HOUR)
    server.answer(html(503), { access_token: 'second-token' })
    await expect(process().load(id)).rejects.toMatchObject({ reason: 'TOKEN_REQUEST_FAILED' })
    await alterToken(id, `retry_at = now() - interval '1 second'`)
    await process().load(id)
    expect(await tokenRow(id)).toMatchObject({ failures: 0, error: null, retryAt: null, version: 2 })
  })

  it("is the account's matter when the client is the account's own", async () => {
    const id = await addClient(CLIENT_CREDENTIALS)
    server.answer(code('invalid_client', 401))
    await expect(process().load(id)).rejects.toMatchObject({ reason: 'CREDENTIALS_INVALID' })
    expect(await statusOf(id)).toMatchObject({ status: 'needs_reauth' })
  })

  it('names the placeholder that an incomplete definition lacks', async () => {
    const id = await addConsent(CONSENT, {
      ...OAUTH2,
      credentials: {
        format: 'oauth2',
        config: { auth: { tokenHost: 'https://x.example.com' }, fields: [{ name: 'subdomain' }] },
      },
    })
    pass(HOUR)
    await expect(process().load(id)).rejects.toMatchObject({
      reason: 'TOKEN_REQUEST_FAILED',
      publicMessage: expect.stringContaining('{{client_id}}'),
    })
    expect(await statusOf(id)).toMatchObject({ status: 'active' })
  })
})

describe("an error in a success, where the secret is the account's own", () => {
  const LOGIN = {
    ...CLIENT_CREDENTIALS,
    credentials: {
      format: 'vendor_oauth',
      config: {
        fields: [
          { name: 'client_id', type: 'text', required: true },
          { name: 'client_secret', type: 'password', required: true },
        ],
        token_request: {
          method: 'POST',
          base_url: 'https://auth.example.com',
          path: '/login',
          body: { s: '{{client_secret}}' },
        },
        token_expression: 'body.token',
      },
    },
  }
  const withRule = (error_expression: string) => ({ ...LOGIN, error_expression })
  const OWN_RULE = withRule('body.state = "bad" ? {"message": "Wrong password for " & body.user, "status": 401}')
  const BUSY_RULE = withRule('body.state = "busy" ? {"message": "Come back", "action": "retry"}')

  it.each<[what: string, config: JsonObject, body: JsonObject, text: string, kind: string]>([
    ['a number and a text', LOGIN, { code: 10014, msg: 'app secret invalid' }, 'app secret invalid', 'grant_refused'],
    [
      'another number and text',
      LOGIN,
      { errcode: 40001, errmsg: 'invalid credential' },
      'invalid credential',
      'grant_refused',
    ],
    ['a list', LOGIN, { errors: [{ message: 'no such user' }] }, 'no such user', 'grant_refused'],
    ['a text', LOGIN, { message: 'Invalid login' }, 'Invalid login', 'grant_refused'],
    [
      'what the definition recognizes',
      OWN_RULE,
      { state: 'bad', user: 'ada' },
      'Wrong password for ada',
      'grant_refused',
    ],
    ['what the definition calls transient', BUSY_RULE, { state: 'busy' }, 'Come back', 'transient'],
    ['nothing at all', LOGIN, { ok: true }, 'no access token', 'client_refused'],
    ['nothing that the definition knows', OWN_RULE, { ok: true }, 'no access token', 'client_refused'],
  ])('%s', async (_what, config, body, text, kind) => {
    const id = await addClient(config)
    server.answer(errorResponse(200, body))
    await expect(process().load(id)).rejects.toMatchObject({
      metadata: { cause: kind },
      publicMessage: expect.stringContaining(text),
    })
    expect(await statusOf(id)).toMatchObject({ status: kind === 'grant_refused' ? 'needs_reauth' : 'active' })
    expect(server.asked).toHaveLength(1)
  })

  it('is no error where the response holds a token', async () => {
    const id = await addClient(withRule('$not($exists(body.data)) ? "no data"'))
    server.answer(errorResponse(200, { token: 'granted', message: 'Welcome' }))
    await process().load(id)
    expect(await statusOf(id)).toMatchObject({ status: 'active' })
  })
})
