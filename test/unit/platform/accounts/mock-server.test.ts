import { Events, OAuth2Server } from 'oauth2-mock-server'
import { afterAll, expect, it } from 'vitest'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { type Consent, consentFixture, grantOf, NOW, STATE } from './consent-fixture.ts'

const fixture = await consentFixture()
const server = new OAuth2Server()
await server.issuer.keys.generate('RS256')
await server.start(0, '127.0.0.1')
afterAll(() => server.stop())

const CONFIG = {
  client: { id: 'app', secret: 'app-secret' },
  auth: { tokenHost: server.issuer.url ?? '', tokenPath: '/token', authorizePath: '/authorize', revokePath: '/revoke' },
  scope: ['openid', 'read'],
}

interface Shape {
  readonly what: string
  readonly config?: JsonObject
  /** Changes the response of the token endpoint. */
  readonly reshape?: (body: Record<string, unknown>) => Record<string, unknown>
  readonly status?: number
  readonly expected: { readonly lifetime?: number | null; readonly missing?: readonly string[]; readonly code?: string }
}

const SHAPES: readonly Shape[] = [
  { what: 'as it is', expected: { lifetime: 3600 } },
  {
    what: 'with a lifetime as a text',
    reshape: (body) => ({ ...body, expires_in: '90' }),
    expected: { lifetime: 90 },
  },
  {
    what: 'without a lifetime',
    reshape: ({ expires_in: _, ...body }) => body,
    expected: { lifetime: null },
  },
  {
    what: 'within another object',
    config: { token_response: { access_token: 'data.token.access_token', expires_in: 'data.ttl' } },
    reshape: (token) => ({ data: { token, ttl: 5 } }),
    expected: { lifetime: 5 },
  },
  {
    what: 'with fewer scopes',
    reshape: (body) => ({ ...body, scope: 'openid' }),
    expected: { missing: ['read'] },
  },
  {
    what: 'with an error as a success',
    reshape: () => ({ error: 'invalid_grant' }),
    expected: { code: 'token_exchange_failed' },
  },
  {
    what: 'with an error of the server',
    reshape: () => ({ error: 'server_error' }),
    status: 500,
    expected: { code: 'provider_unreachable' },
  },
]

it.each(SHAPES)('reads a token response $what', async ({ config, reshape, status, expected }) => {
  const consent: Consent = { config: { ...CONFIG, ...config } }
  if (reshape !== undefined)
    server.service.once(Events.BeforeResponse, (response) => {
      response.body = reshape(response.body as Record<string, unknown>)
      response.statusCode = status ?? 200
    })
  const { url, secrets } = await fixture.begin(consent)
  const { headers } = await fetch(url, { redirect: 'manual' })
  const params = Object.fromEntries(new URL(headers.get('location') ?? '').searchParams)
  expect(params.state).toBe(STATE)
  const result = await fixture.complete(consent, params, secrets)
  if (expected.code !== undefined) {
    expect(result).toMatchObject({ kind: 'failed', code: expected.code })
    return
  }
  const { token, missingScopes } = grantOf(result)
  const lifetime = token.expiresAt === undefined ? null : (token.expiresAt.getTime() - NOW.getTime()) / 1_000
  if (expected.lifetime !== undefined) expect(lifetime).toBe(expected.lifetime)
  if (expected.missing !== undefined) expect(missingScopes).toEqual(expected.missing)
  expect(await fixture.revoke(consent, token)).toEqual({ kind: 'revoked' })
})
