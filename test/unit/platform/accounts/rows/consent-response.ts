import type { JsonObject } from '../../../../../src/foundation/json/index.ts'
import type { ScriptedAnswer, ScriptedExchange } from '../../../../support/upstream.ts'
import { REDIRECT_URI, STATE } from '../consent-fixture.ts'
import { type ConsentRow, form } from './consent.ts'

const BODY = { client_id: 'app', client_secret: 'app-secret' }
const BASE = {
  client: { id: 'app', secret: 'app-secret' },
  auth: { tokenHost: '{{env.HOST}}', tokenPath: '/token' },
  options: { authorizationMethod: 'body' },
  pkce: false,
} as const
const TOKEN = { access_token: 'access-1', refresh_token: 'refresh-1', expires_in: 3600, token_type: 'bearer' }
const BASIC = `Basic ${Buffer.from('app:app-secret').toString('base64')}`

/** The exchange of the code, answered like this. */
function answered(answer: ScriptedAnswer): readonly ScriptedExchange[] {
  const params = { grant_type: 'authorization_code', code: 'the-code', redirect_uri: REDIRECT_URI, ...BODY }
  return [{ request: 'POST /token', body: form(params), answer }]
}

function text(type: string, body: string, status = 200): ScriptedAnswer {
  return { status, text: body, headers: { 'content-type': type } }
}

function granted(json: JsonObject): readonly ScriptedExchange[] {
  return answered({ json })
}

export const RESPONSE_ROWS: readonly ConsentRow[] = [
  {
    quirk: 'a lifetime as a text',
    config: BASE,
    exchange: granted({ ...TOKEN, expires_in: '3600' }),
    granted: { lifetime: 3600 },
  },
  {
    quirk: 'a lifetime in milliseconds: Fiserv',
    config: { ...BASE, token_response: { expires_in_unit: 'milliseconds' } },
    exchange: granted({ ...TOKEN, expires_in: 3_600_000 }),
    granted: { lifetime: 3600 },
  },
  {
    quirk: 'no lifetime in the response, a known one: Salesforce',
    config: { ...BASE, tokenExpiryDuration: '7200' },
    exchange: granted({ access_token: 'access-1' }),
    granted: { lifetime: 7200 },
  },
  {
    quirk: 'no lifetime, no refresh token, nothing else: Airtable, Notion, Monday',
    config: BASE,
    exchange: granted({ access_token: 'access-1' }),
    granted: { access: 'access-1', lifetime: null },
  },
  {
    quirk: 'a moment instead of a lifetime',
    config: { ...BASE, token_response: { expires_in: 'expires_at' } },
    exchange: granted({ access_token: 'access-1', expires_at: '2026-01-01T02:00:00Z' }),
    granted: { lifetime: 7200 },
  },
  {
    quirk: 'a token within another object: the user token of Slack',
    config: {
      ...BASE,
      token_response: { access_token: 'authed_user.access_token', scope: 'authed_user.scope' },
      scope: ['search:read'],
      context_from_token: { team_id: 'team.id' },
    },
    exchange: granted({ ok: true, authed_user: { access_token: 'xoxp', scope: 'search:read' }, team: { id: 'T1' } }),
    granted: { access: 'xoxp', missing: [] },
  },
  {
    quirk: 'JSON as text/plain',
    config: BASE,
    exchange: answered(text('text/plain', ` ${JSON.stringify(TOKEN)}\n`)),
    granted: { access: 'access-1', refresh: 'refresh-1', lifetime: 3600 },
  },
  {
    quirk: 'a form',
    config: BASE,
    exchange: answered(
      text('application/x-www-form-urlencoded', 'access_token=access-1&token_type=bearer&expires_in=60&scope='),
    ),
    granted: { access: 'access-1', lifetime: 60 },
  },
  {
    quirk: 'fewer scopes than requested, with another separator: the customer unticked one',
    config: { ...BASE, scope: ['repo', 'user', 'offline_access', 'User.Read'] },
    exchange: granted({ ...TOKEN, scope: 'repo,https://graph.example.com/user.read' }),
    granted: { access: 'access-1', missing: ['user'] },
  },
  {
    quirk: 'scopes as a list',
    config: { ...BASE, scope: ['a', 'b'] },
    exchange: granted({ ...TOKEN, scope: ['a'] }),
    granted: { missing: ['b'] },
  },
  {
    quirk: 'a scope without which the integration is of no use',
    config: { ...BASE, scope: ['a', 'b'], required_scope: ['b'] },
    exchange: granted({ ...TOKEN, scope: 'a' }),
    failed: ['scope_missing', 'b'],
  },
  {
    quirk: 'an error as a success: GitHub',
    config: BASE,
    exchange: granted({ error: 'bad_verification_code', error_description: 'It is expired.' }),
    failed: ['token_exchange_failed', 'bad_verification_code: It is expired.'],
  },
  {
    quirk: 'an error as a success, by name alone: Slack',
    config: BASE,
    exchange: granted({ ok: false, error: 'invalid_code' }),
    failed: ['token_exchange_failed', 'invalid_code'],
  },
  {
    quirk: 'an error as an object: Facebook',
    config: BASE,
    exchange: answered({ status: 400, json: { error: { type: 'OAuthException', message: 'expired' } } }),
    failed: ['token_exchange_failed', 'OAuthException: expired'],
  },
  {
    quirk: 'a success without a token',
    config: BASE,
    exchange: granted({ token: 'access-1' }),
    failed: ['token_exchange_failed', 'no access token'],
  },
  {
    quirk: 'a wrong client',
    config: BASE,
    exchange: answered({ status: 401, json: { error: 'invalid_client' } }),
    failed: ['token_exchange_failed', 'invalid_client'],
  },
  {
    quirk: 'a page of a proxy: HTML and 503',
    config: BASE,
    exchange: answered(text('text/html', '<html><body>Service Unavailable</body></html>', 503)),
    failed: ['provider_unreachable', '503'],
  },
  {
    quirk: 'a page as a success',
    config: BASE,
    exchange: answered(text('text/html', '<!doctype html><title>Sign in</title>')),
    failed: ['provider_unreachable', 'no access token'],
  },
  {
    quirk: 'a redirect of the token endpoint, which would carry the secret elsewhere',
    config: BASE,
    exchange: answered({ status: 302, headers: { location: '/elsewhere' } }),
    failed: ['token_exchange_failed', '302'],
  },
  {
    quirk: 'a redirect that repeats the request: 307',
    config: BASE,
    exchange: answered({ status: 307, headers: { location: '/elsewhere' } }),
    failed: ['token_exchange_failed', '307'],
  },
  {
    quirk: 'a rate limit',
    config: BASE,
    exchange: answered({ status: 429, headers: { 'retry-after': '30' }, json: { error: 'slow_down' } }),
    failed: ['provider_unreachable', 'slow_down'],
  },
  {
    quirk: 'a connection that is closed',
    config: BASE,
    exchange: answered({ hangUp: true }),
    failed: ['provider_unreachable', ''],
  },
  {
    quirk: 'a body of 20 MB',
    config: BASE,
    exchange: answered({ text: ' '.repeat(20 * 1024 * 1024) }),
    failed: ['token_exchange_failed', ''],
  },
]

const ISSUER = { ...BASE, auth: { ...BASE.auth, issuer: 'https://auth.example.com' } }

export const RETURN_ROWS: readonly ConsentRow[] = [
  {
    quirk: 'an issuer that is the recorded one',
    config: ISSUER,
    returned: { code: 'the-code', state: STATE, iss: 'https://auth.example.com' },
    exchange: granted(TOKEN),
    granted: { access: 'access-1' },
  },
  {
    quirk: 'an issuer that differs by one byte: nothing is exchanged',
    config: ISSUER,
    returned: { code: 'the-code', state: STATE, iss: 'https://auth.example.com/' },
    failed: ['issuer_mismatch', 'https://auth.example.com/'],
  },
  {
    quirk: 'an error of another issuer, which says nothing about this consent',
    config: ISSUER,
    returned: { error: 'access_denied', state: STATE, iss: 'https://evil.example.com' },
    failed: ['issuer_mismatch', 'https://evil.example.com'],
  },
  {
    quirk: 'no issuer, although the server announces one',
    config: { ...ISSUER, auth: { ...ISSUER.auth, issuerRequired: true } },
    returned: { code: 'the-code', state: STATE },
    failed: ['issuer_mismatch', 'names no issuer'],
  },
  {
    quirk: 'an issuer where the definition names none',
    config: BASE,
    returned: { code: 'the-code', state: STATE, iss: 'https://auth.example.com' },
    exchange: granted(TOKEN),
    granted: { access: 'access-1' },
  },
  {
    quirk: 'a customer who declines',
    config: BASE,
    returned: { error: 'access_denied', error_description: 'The user\ndenied\u202e it', state: STATE },
    failed: ['consent_denied', 'access_denied: The user denied it'],
  },
  {
    quirk: 'a customer who declines, by another name: LinkedIn',
    config: BASE,
    returned: { error: 'user_cancelled_login', state: STATE },
    failed: ['consent_denied', 'user_cancelled_login'],
  },
  {
    quirk: 'a customer who declines, as a reason: Facebook',
    config: BASE,
    returned: { error_code: '200', error_reason: 'user_denied', error_message: 'Permissions error' },
    failed: ['consent_denied', '200: Permissions error'],
  },
  {
    quirk: 'an error of the server',
    config: BASE,
    returned: { error: 'server_error', state: STATE },
    failed: ['provider_error', 'server_error'],
  },
  {
    quirk: 'neither a code nor an error',
    config: BASE,
    returned: { state: STATE, code: '' },
    failed: ['provider_error', 'no parameter code'],
  },
]

export const PENDING_ROW: ConsentRow = {
  quirk: 'an administrator who has to confirm: GitHub, Entra',
  config: {
    ...BASE,
    authorize: { pending_when: { setup_action: 'request' } },
    context_from_redirect: { installation_id: 'installation_id' },
  },
  returned: { setup_action: 'request', installation_id: '5', state: STATE },
}

const REFRESH = { grant_type: 'refresh_token', refresh_token: 'refresh-1' }

export const REFRESH_ROWS: readonly ConsentRow[] = [
  {
    quirk: 'another address of refreshes: Figma, HeyGen, Trustpilot',
    config: {
      ...BASE,
      auth: { ...BASE.auth, refreshHost: '{{env.HOST}}/other', refreshPath: '/refresh' },
      tokenParams: { only: 'exchange' },
    },
    exchange: [
      {
        request: 'POST /token',
        body: form({
          grant_type: 'authorization_code',
          code: 'the-code',
          redirect_uri: REDIRECT_URI,
          ...BODY,
          only: 'exchange',
        }),
        answer: { json: TOKEN },
      },
    ],
    refresh: [
      { request: 'POST /other/refresh', body: form({ ...REFRESH, ...BODY }), answer: { json: { access_token: 'a2' } } },
    ],
    refreshed: { access: 'a2', refresh: 'refresh-1', lifetime: null },
  },
  {
    quirk: 'the access token itself is exchanged, by GET: Instagram, Threads',
    config: {
      ...BASE,
      auth: { ...BASE.auth, refreshPath: '/refresh_access_token' },
      refresh: { method: 'GET', token: 'access_token', omit: ['client_id', 'client_secret'] },
      refreshParams: { grant_type: 'ig_refresh_token' },
    },
    exchange: granted({ access_token: 'access-1', expires_in: 60 }),
    refresh: [
      {
        request: 'GET /refresh_access_token?grant_type=ig_refresh_token&access_token=access-1',
        answer: { json: { access_token: 'access-2', expires_in: 5_184_000 } },
      },
    ],
    refreshed: { access: 'access-2', lifetime: 5_184_000 },
  },
  {
    quirk: 'a second exchange for a token that lives longer: Instagram, Facebook',
    config: {
      ...BASE,
      extend: {
        path: '/access_token',
        method: 'GET',
        omit: ['client_id'],
        params: { grant_type: 'ig_exchange_token' },
      },
    },
    exchange: [
      ...granted({ access_token: 'access-1', expires_in: 3600, user_id: 7 }),
      {
        request: 'GET /access_token?grant_type=ig_exchange_token&access_token=access-1&client_secret=app-secret',
        answer: { json: { access_token: 'access-2', expires_in: 5_184_000 } },
      },
    ],
    granted: { access: 'access-2', lifetime: 5_184_000 },
  },
  {
    quirk: 'a second exchange that fails',
    config: { ...BASE, extend: { path: '/longer' } },
    exchange: [
      ...granted({ access_token: 'access-1' }),
      {
        request: 'POST /longer',
        body: form({ access_token: 'access-1', ...BODY }),
        answer: { status: 400, json: { error: { message: 'not access-1', code: 'x' } } },
      },
    ],
    failed: ['token_exchange_failed', 'x: not ***'],
  },
  {
    quirk: 'further and other parameters of refreshes: BambooHR, Basecamp, Zendesk, Clover',
    config: {
      ...BASE,
      refreshParams: { request: 'token', type: 'refresh', expires_in: 172_800 },
      refresh: { omit: ['grant_type', 'client_secret'], bodyFormat: 'json' },
    },
    exchange: granted(TOKEN),
    refresh: [
      {
        request: 'POST /token',
        body: { refresh_token: 'refresh-1', client_id: 'app', request: 'token', type: 'refresh', expires_in: 172_800 },
        answer: { json: { access_token: 'access-2', refresh_token: 'refresh-2' } },
      },
    ],
    refreshed: { access: 'access-2', refresh: 'refresh-2' },
  },
]

const REVOKED = { kind: 'revoked' }

/** A revocation of the refresh token. */
function revocation(answer: ScriptedAnswer, path = '/revoke'): ScriptedExchange {
  const params = { token: 'refresh-1', token_type_hint: 'refresh_token', ...BODY }
  return { request: `POST ${path}`, body: form(params), answer }
}

const REVOCABLE = { ...BASE, auth: { ...BASE.auth, revokePath: '/revoke' } }

export const REVOCATION_ROWS: readonly ConsentRow[] = [
  { quirk: 'no address of revocations', config: BASE, exchange: granted(TOKEN), revoke: [] },
  {
    quirk: 'the refresh token is revoked, because it ends the grant',
    config: REVOCABLE,
    exchange: granted(TOKEN),
    revoke: [revocation({ status: 200 })],
    revoked: REVOKED,
  },
  {
    quirk: 'a token that the server does not know any more',
    config: REVOCABLE,
    exchange: granted(TOKEN),
    revoke: [revocation({ status: 400, json: { error: 'invalid_token' } })],
    revoked: REVOKED,
  },
  {
    quirk: 'a server that revokes access tokens alone',
    config: REVOCABLE,
    exchange: granted(TOKEN),
    revoke: [
      revocation({ status: 400, json: { error: 'unsupported_token_type' } }),
      {
        request: 'POST /revoke',
        body: form({ token: 'access-1', token_type_hint: 'access_token', ...BODY }),
        answer: { status: 200 },
      },
    ],
    revoked: REVOKED,
  },
  {
    quirk: 'an address, a host and parameters of its own',
    config: {
      ...BASE,
      auth: { ...BASE.auth, revokeHost: '{{env.HOST}}/identity', revokePath: 'connect/revocation' },
      revokeParams: { force: true },
      revoke: { omit: ['token_type_hint'] },
    },
    exchange: granted(TOKEN),
    revoke: [
      {
        request: 'POST /identity/connect/revocation',
        body: form({ token: 'refresh-1', ...BODY, force: 'true' }),
        answer: { status: 204 },
      },
    ],
    revoked: REVOKED,
  },
  {
    quirk: 'DELETE with the token in the path: HubSpot',
    config: {
      ...BASE,
      auth: { ...BASE.auth, revokePath: '/refresh-tokens/{{oauth.token.refresh_token}}' },
      revoke: {
        method: 'DELETE',
        bodyFormat: 'query',
        omit: ['token', 'token_type_hint', 'client_id', 'client_secret'],
      },
    },
    exchange: granted(TOKEN),
    revoke: [{ request: 'DELETE /refresh-tokens/refresh-1', answer: { status: 204 } }],
    revoked: REVOKED,
  },
  {
    quirk: 'DELETE with the access token in JSON and HTTP Basic: GitHub',
    config: {
      ...REVOCABLE,
      options: { authorizationMethod: 'header' },
      revoke: {
        method: 'DELETE',
        token: 'access_token',
        bodyFormat: 'json',
        omit: ['token_type_hint'],
        parameter_names: { token: 'access_token' },
      },
    },
    exchange: [
      {
        request: 'POST /token',
        body: form({ grant_type: 'authorization_code', code: 'the-code', redirect_uri: REDIRECT_URI }),
        answer: { json: TOKEN },
      },
    ],
    revoke: [
      {
        request: 'DELETE /revoke',
        headers: { authorization: BASIC },
        body: { access_token: 'access-1' },
        answer: { status: 204 },
      },
    ],
    revoked: REVOKED,
  },
  {
    quirk: 'authorised by the token itself: Slack',
    config: {
      ...REVOCABLE,
      revoke: { token: 'access_token', omit: ['token', 'token_type_hint', 'client_id', 'client_secret'] },
      revokeHeaders: { Authorization: 'Bearer {{oauth.token.access_token}}' },
    },
    exchange: granted(TOKEN),
    revoke: [
      {
        request: 'POST /revoke',
        headers: { authorization: 'Bearer access-1' },
        body: '',
        answer: { json: { ok: true, revoked: true } },
      },
    ],
    revoked: REVOKED,
  },
  {
    quirk: 'a server that fails',
    config: REVOCABLE,
    exchange: granted(TOKEN),
    revoke: [revocation({ status: 503, text: 'refresh-1 and app-secret' })],
    revoked: { kind: 'transient', message: 'the answer was 503' },
  },
]
