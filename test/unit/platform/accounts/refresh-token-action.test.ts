import { describe, expect, it } from 'vitest'
import { errorResponse, OAUTH2, tokensFixture } from './token-fixture.ts'

const { server, pass, process, addConsent, statusOf, secretsOf } = await tokensFixture()

const HOUR = 3_600_000
const CONSENT = { access_token: 'first-token', expires_in: 3600 }
/** Logs in with what the account has, then trades the login for a token. */
const RENEWED_IN_STEPS = {
  ...OAUTH2,
  retry: { max_attempts: 1 },
  actions: {
    refresh_token: {
      steps: [
        { name: 'login', type: 'request', config: { method: 'POST', path: '/login', authorization: null } },
        {
          name: 'trade',
          type: 'request',
          config: {
            method: 'POST',
            path: '/trade',
            authorization: null,
            body_format: 'form',
            body: { login: '{{$steps.login.ticket}}', old: '{{oauth.token.access_token}}' },
          },
        },
        { type: 'transform', config: '{"access_token": $previous.new, "expires_in": 3600}' },
      ],
    },
  },
}
const TICKET = errorResponse(200, { ticket: 'a-ticket-that-nobody-may-see' })

const expired = async () => {
  const id = await addConsent(CONSENT, RENEWED_IN_STEPS)
  pass(HOUR)
  return id
}

describe('the action refresh_token', () => {
  it('asks for the next token, where no refresh token could', async () => {
    const id = await expired()
    server.answer(TICKET, errorResponse(200, { new: 'second-token' }))
    const { access } = await process().load(id)
    expect(access.credentials.oauth).toMatchObject({ token: { access_token: 'second-token' } })
    expect(server.asked[1]).toEqual({ login: 'a-ticket-that-nobody-may-see', old: 'first-token' })
    expect(Object.values(await secretsOf(id)).join()).toContain('second-token')
  })

  it('is not run for the first token, nor while there is a good one', async () => {
    const id = await addConsent(CONSENT, RENEWED_IN_STEPS)
    server.answer()
    await process().load(id)
    expect(server.asked).toEqual([])
  })

  it('that is refused makes the account need a new consent, and says nothing of what was sent', async () => {
    const id = await expired()
    const error_description = 'bad first-token and a-ticket-that-nobody-may-see'
    server.answer(TICKET, errorResponse(400, { error: 'invalid_grant', error_description }))
    await expect(process().load(id)).rejects.toMatchObject({ reason: 'CREDENTIALS_INVALID' })
    const { status, lastError } = await statusOf(id)
    expect(status).toBe('needs_reauth')
    expect(lastError).toContain('bad *** and ***')
  })

  it.each([
    ['is not answered', errorResponse(503, {})],
    ['meets a rate limit', errorResponse(429, {})],
  ])('that %s is nobody’s fault', async (_what, answer) => {
    const id = await expired()
    server.answer(TICKET, answer)
    await expect(process().load(id)).rejects.toMatchObject({ reason: 'TOKEN_REQUEST_FAILED' })
    expect((await statusOf(id)).status).toBe('active')
  })

  it('that comes to no token is the definition’s fault', async () => {
    const id = await expired()
    server.answer(TICKET, errorResponse(200, {}))
    await expect(process().load(id)).rejects.toMatchObject({
      reason: 'TOKEN_REQUEST_FAILED',
      metadata: { cause: 'client_refused' },
    })
  })
})
