import { describe, expect, it } from 'vitest'
import { tokenErrorFrom } from '../../../../src/engine/formats/credential/token-response.ts'
import type { Json } from '../../../../src/foundation/json/index.ts'

const NOW = new Date('2026-01-01T00:00:00Z')
const STATUSES = [200, 400, 401, 403, 404, 422] as const
const REFUSALS: readonly number[] = [400, 401, 403, 422]
const TRANSIENT_STATUSES = [408, 429, 500, 502, 503, 504] as const
const OWNERS = ['account', 'integration'] as const
const CODES = {
  transient: [
    'internal_error',
    'fatal_error',
    'ratelimited',
    'RATE_LIMIT_EXCEEDED',
    'service_unavailable',
    'server_error',
  ],
  grant_refused: ['invalid_grant', 'token_revoked', 'refresh_token_expired', 'bad_refresh_token', 'account_inactive'],
  client_refused: [
    'bad_client_secret',
    'invalid_scope',
    'invalid_grant_type',
    'unsupported_token_type',
    'redirect_uri_mismatch',
  ],
} as const
const VAGUE_CODES = [
  undefined,
  'bad_request',
  'OAuthException',
  'odd_things_happened',
  'token_endpoint_error',
  'user_agent_required',
]
const TEXTS = {
  transient: ['Rate limit exceeded', 'Please try again later', 'An internal error occurred'],
  grant_refused: [
    'the refresh token is invalid',
    'Token has been expired or revoked.',
    'Session has expired on Friday',
    'The refresh token is invalid or was issued to another client',
  ],
  client_refused: ['Missing parameter: refresh_token', 'invalid request: parameter token', 'The client is unknown'],
} as const

/** The places where servers put code and text. */
const SHAPES: readonly ((code: string | undefined, text: string | undefined) => Json)[] = [
  (code, text) => ({ ok: false, ...(code && { error: code }), ...(text && { error_description: text }) }),
  (code, text) => ({ error: { ...(code && { code }), ...(text && { message: text }) } }),
]

function verdict(status: number, body: Json, owner: (typeof OWNERS)[number]) {
  return tokenErrorFrom({ status, headers: {}, body }, owner, NOW).kind
}

const everyBody = SHAPES.flatMap((shape) =>
  [...VAGUE_CODES, ...Object.values(CODES).flat()].flatMap((code) =>
    [undefined, ...Object.values(TEXTS).flat()].map((text) => ({ code, text, body: shape(code, text) })),
  ),
)

describe('the verdict on a token response', () => {
  it('is transient by its status, whatever else it says', () => {
    for (const status of TRANSIENT_STATUSES)
      for (const { body } of everyBody)
        for (const owner of OWNERS)
          expect(verdict(status, body, owner), JSON.stringify([status, body])).toBe('transient')
  })

  it('is that of a code that is understood, whatever the text and the status', () => {
    for (const [wanted, codes] of Object.entries(CODES))
      for (const { code, body } of everyBody.filter((each) => codes.some((own) => own === each.code)))
        for (const status of STATUSES)
          expect(verdict(status, body, 'integration'), JSON.stringify([status, code, body])).toBe(wanted)
  })

  it('is that of the text where the code is vague', () => {
    for (const [wanted, texts] of Object.entries(TEXTS))
      for (const { code, text, body } of everyBody)
        if (VAGUE_CODES.includes(code) && texts.some((own) => own === text))
          for (const status of STATUSES)
            expect(verdict(status, body, 'integration'), JSON.stringify([status, body])).toBe(wanted)
  })

  it("never counts against the account without a sign, where the client is the integration's", () => {
    for (const { code, text, body } of everyBody.filter((each) => each.text === undefined))
      if (VAGUE_CODES.includes(code))
        for (const status of REFUSALS)
          expect(['unclear', 'client_refused'], JSON.stringify([status, code, text])).toContain(
            verdict(status, body, 'integration'),
          )
  })

  it("is never unclear where the secret is the account's own: it is not sent again and again", () => {
    for (const { body } of everyBody)
      for (const status of STATUSES) expect(verdict(status, body, 'account'), JSON.stringify(body)).not.toBe('unclear')
  })

  it('never counts against the account for a page, a text or nothing', () => {
    for (const status of [...STATUSES, ...TRANSIENT_STATUSES])
      for (const body of ['<html>Sorry</html>', 'gone', '', null, []])
        expect(verdict(status, body, 'integration')).toBe('transient')
    for (const status of STATUSES) expect(verdict(status, '<html>Sorry</html>', 'account')).toBe('transient')
  })

  it('is transient for a body that says so', () => {
    for (const status of STATUSES)
      for (const body of [{ is_transient: true }, { error: { is_transient: true, code: 'invalid_grant' } }])
        expect(verdict(status, body, 'integration')).toBe('transient')
  })
})

it('the wait is read on the clock of the server', () => {
  const headers = { date: 'Wed, 31 Dec 2025 23:55:00 GMT', 'retry-after': 'Wed, 31 Dec 2025 23:55:20 GMT' }
  expect(tokenErrorFrom({ status: 503, headers, body: null }, 'integration', NOW).retryAfterSeconds).toBe(20)
})
