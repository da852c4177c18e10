import { generateKeyPairSync } from 'node:crypto'
import type { Json, JsonObject } from '../../../../../src/foundation/json/index.ts'

/** One promise about the tokens of a credential format: asked like this and answered like this, the account has this token. */
export interface TokenRow {
  readonly promise: string
  readonly config: Json
  readonly credentials?: JsonObject
  readonly context?: JsonObject
  /** Fields of the token before, if there was one. */
  readonly previous?: JsonObject
  /** What the requests are answered, in order. Default status: 200. */
  readonly answers: readonly {
    readonly status?: number
    readonly headers?: Record<string, string>
    readonly cookies?: Record<string, string>
    readonly body: Json
  }[]
  /** Parts of the requests, rendered. */
  readonly sent: readonly JsonObject[]
  readonly token?: {
    readonly access: string
    readonly refresh?: string
    /** Seconds from now. */
    readonly lifetime?: number
    readonly fields?: JsonObject
  }
  /** Kind, and a part of the message. */
  readonly failure?: readonly [kind: string, message: string]
}

/** When the rows take place. */
export const NOW = new Date('2026-01-01T00:00:00Z')
const KEY = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
})

const AUTH = { tokenHost: 'https://auth.example.com', tokenPath: '/token' }
const CLIENT = { client_id: 'i d', client_secret: 's+1' }
const GRANT = { grant_type: 'client_credentials' }
const BASIC = `Basic ${Buffer.from('i+d:s%2B1').toString('base64')}`
const TOKEN = { access_token: 'a1', token_type: 'bearer', expires_in: 3600 }
const REFRESHABLE = { access_token: 'a0', refresh_token: 'r0', instance_url: 'https://eu.example.com' }
const APP = { client: { id: 'app', secret: 'app-secret' }, auth: AUTH }

export const TOKEN_ROWS: Readonly<Record<string, readonly TokenRow[]>> = {
  oauth2_client_credentials: [
    {
      promise: 'asks with HTTP Basic, form-encoded, by default',
      config: { auth: AUTH, scope: ['a', 'b'] },
      credentials: CLIENT,
      answers: [{ body: TOKEN }],
      sent: [
        {
          method: 'POST',
          base_url: 'https://auth.example.com',
          path: '/token',
          headers: { authorization: BASIC },
          body: { ...GRANT, scope: 'a b' },
          body_format: 'form',
        },
      ],
      token: { access: 'a1', lifetime: 3600, fields: TOKEN },
    },
    {
      promise: 'leaves id and secret as they are where the server does not decode them',
      config: { auth: AUTH, options: { credentialsEncodingMode: 'loose' } },
      credentials: CLIENT,
      answers: [{ body: TOKEN }],
      sent: [{ headers: { authorization: `Basic ${Buffer.from('i d:s+1').toString('base64')}` } }],
      token: { access: 'a1', lifetime: 3600 },
    },
    {
      promise: 'sends the client as parameters, in JSON, with a separator, parameters and headers of its own',
      config: {
        auth: AUTH,
        options: { authorizationMethod: 'body', bodyFormat: 'json', scopeSeparator: ',' },
        scope: ['a', 'b'],
        tokenParams: { audience: 'https://{{subdomain}}.example.com', missing: '{{nothing}}' },
        tokenHeaders: { 'x-app': '{{subdomain}}' },
      },
      credentials: CLIENT,
      context: { subdomain: 'acme' },
      answers: [{ body: TOKEN }],
      sent: [
        {
          headers: { 'x-app': 'acme' },
          body: {
            ...GRANT,
            scope: 'a,b',
            audience: 'https://acme.example.com',
            client_id: 'i d',
            client_secret: 's+1',
          },
          body_format: 'json',
        },
      ],
      token: { access: 'a1', lifetime: 3600 },
    },
    {
      promise: 'signs an assertion for the token endpoint instead of sending a secret',
      config: {
        client: { id: 'app', private_key: KEY.privateKey },
        auth: AUTH,
        options: { authorizationMethod: 'private_key_jwt' },
      },
      answers: [{ body: TOKEN }],
      sent: [
        {
          headers: {},
          body: {
            ...GRANT,
            client_id: 'app',
            client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
            client_assertion: {
              iss: 'app',
              sub: 'app',
              aud: 'https://auth.example.com/token',
              jti: 'nonce',
              iat: 1767225600,
              exp: 1767225900,
            },
          },
        },
      ],
      token: { access: 'a1', lifetime: 3600 },
    },
    {
      promise: 'signs an assertion with claims of its own: Revolut',
      config: {
        client: {
          id: 'app',
          private_key: KEY.privateKey,
          key_id: '{{kid}}',
          claims: { iss: '{{domain}}', aud: 'https://revolut.com', jti: '{{none}}' },
        },
        auth: AUTH,
        options: { authorizationMethod: 'private_key_jwt' },
        token: { omit: ['client_id'] },
      },
      context: { domain: 'patchbay.example', kid: 'k' },
      answers: [{ body: TOKEN }],
      sent: [
        {
          body: {
            ...GRANT,
            client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
            client_assertion: {
              iss: 'patchbay.example',
              sub: 'app',
              aud: 'https://revolut.com',
              jti: 'nonce',
              iat: 1767225600,
              exp: 1767225900,
            },
          },
        },
      ],
      token: { access: 'a1', lifetime: 3600 },
    },
    {
      promise: 'reads tokens where the answer has them, and takes a lifetime that is a text',
      config: { auth: AUTH, token_response: { access_token: 'data.token', expires_in: 'data.ttl' } },
      credentials: CLIENT,
      answers: [{ body: '{"data":{"token":"a1","ttl":"60"}}' }],
      sent: [{ path: '/token' }],
      token: { access: 'a1', lifetime: 60 },
    },
    {
      promise: 'parses a form with any content type, and applies the configured lifetime',
      config: { auth: AUTH, tokenExpiryDuration: '120' },
      credentials: CLIENT,
      answers: [{ headers: { 'content-type': 'application/json' }, body: 'access_token=a1&token_type=bearer' }],
      sent: [{ path: '/token' }],
      token: { access: 'a1', lifetime: 120 },
    },
    {
      promise: 'asks the same again instead of using a refresh token',
      config: { auth: AUTH },
      credentials: CLIENT,
      previous: REFRESHABLE,
      answers: [{ body: { ...TOKEN, refresh_token: 'r1' } }],
      sent: [{ body: GRANT }],
      token: { access: 'a1', refresh: 'r1', lifetime: 3600 },
    },
    {
      promise: "blames the account for a client that is the account's own",
      config: { auth: AUTH },
      credentials: CLIENT,
      answers: [{ status: 401, body: { error: 'invalid_client' } }],
      sent: [{ path: '/token' }],
      failure: ['grant_refused', 'invalid_client'],
    },
    {
      promise: "blames the integration for a client that is the definition's",
      config: APP,
      answers: [{ status: 401, body: { error: 'invalid_client' } }],
      sent: [{ path: '/token' }],
      failure: ['client_refused', 'invalid_client'],
    },
  ],
  oauth2: [
    {
      promise: 'refreshes at its own path, and keeps what the answer does not repeat',
      config: { ...APP, auth: { ...AUTH, refreshPath: '/refresh' }, refreshParams: { resource: 'x' } },
      previous: REFRESHABLE,
      answers: [{ body: TOKEN }],
      sent: [{ path: '/refresh', body: { grant_type: 'refresh_token', refresh_token: 'r0', resource: 'x' } }],
      token: { access: 'a1', refresh: 'r0', lifetime: 3600, fields: { ...REFRESHABLE, ...TOKEN } },
    },
    {
      promise: 'takes over a refresh token that was rotated',
      config: APP,
      previous: REFRESHABLE,
      answers: [{ body: { ...TOKEN, refresh_token: 'r1' } }],
      sent: [{ path: '/token' }],
      token: { access: 'a1', refresh: 'r1', lifetime: 3600 },
    },
    {
      promise: 'sends a client without a secret as a public one',
      config: { auth: AUTH, client: { id: 'app' } },
      previous: REFRESHABLE,
      answers: [{ body: { access_token: 'a1', expires_in: 0 } }],
      sent: [{ headers: {}, body: { grant_type: 'refresh_token', refresh_token: 'r0', client_id: 'app' } }],
      token: { access: 'a1', refresh: 'r0' },
    },
    {
      promise: 'takes a success that names an error for one',
      config: APP,
      previous: REFRESHABLE,
      answers: [{ body: { error: 'bad_refresh_token', error_description: 'The refresh token is incorrect.' } }],
      sent: [{ path: '/token' }],
      failure: ['grant_refused', 'bad_refresh_token: The refresh token is incorrect.'],
    },
  ],
  vendor_oauth: [
    {
      promise: 'hands the answer of a step to the next, and reads the token out of the last',
      config: {
        token_request: [
          { method: 'post', path: '/session', body: { user: '{{user}}', password: '{{password}}' } },
          {
            method: 'POST',
            path: '/tokens/{{args.step1.body.session.id}}',
            headers: { 'x-csrf': '{{args.step1.headers.x-csrf}}' },
          },
        ],
        token_expression: 'body.token',
        expires_in_expression: 'steps[0].body.ttl',
        refresh_token_expression: "credentials.password & '-' & context.user & '-' & response.status",
      },
      credentials: { password: 'p' },
      context: { user: 'u' },
      answers: [
        { headers: { 'x-csrf': 'c' }, body: '{"session":{"id":"s 1"},"ttl":90}' },
        { status: 201, body: '{"token":"a1"}' },
      ],
      sent: [
        { path: '/session', body: { user: 'u', password: 'p' } },
        { path: '/tokens/s 1', headers: { 'x-csrf': 'c' } },
      ],
      token: {
        access: 'a1',
        refresh: 'p-u-201',
        lifetime: 90,
        fields: { token: 'a1', access_token: 'a1', refresh_token: 'p-u-201' },
      },
    },
    {
      promise: 'takes the session cookie of a login as the token',
      config: {
        token_request: [
          { path: '/login' },
          { path: '/company', headers: { cookie: 'sid={{args.step1.cookies.sid}}' } },
        ],
        token_expression: 'steps[0].cookies.sid',
      },
      answers: [{ cookies: { sid: 's=1' }, body: {} }, { body: {} }],
      sent: [{ path: '/login' }, { path: '/company', headers: { cookie: 'sid=s=1' } }],
      token: { access: 's=1', fields: { access_token: 's=1' } },
    },
    {
      promise: 'refreshes in its own way, the token before being in reach',
      config: {
        token_request: { path: '/login' },
        refresh_request: { path: '/refresh', body: { token: '{{oauth.token.refresh_token}}' } },
        token_expression: 'body.token',
        expires_in_expression: 'body.until',
      },
      previous: REFRESHABLE,
      answers: [{ body: { token: 'a1', until: '2026-01-01T01:00:00Z' } }],
      sent: [{ path: '/refresh', body: { token: 'r0' } }],
      token: { access: 'a1', refresh: 'r0', lifetime: 3600 },
    },
    {
      promise: 'logs in again when the refresh is rejected',
      config: {
        token_request: { path: '/login' },
        refresh_request: { path: '/refresh' },
        token_expression: 'body.token',
      },
      previous: REFRESHABLE,
      answers: [{ status: 401, body: 'expired' }, { body: { token: 'a2' } }],
      sent: [{ path: '/refresh' }, { path: '/login' }],
      token: { access: 'a2', fields: { token: 'a2', access_token: 'a2' } },
    },
    {
      promise: 'ends at the first step that is rejected',
      config: { token_request: [{ path: '/login' }, { path: '/token' }], token_expression: 'body.token' },
      answers: [{ status: 403, body: { message: 'wrong password' } }],
      sent: [{ path: '/login' }],
      failure: ['grant_refused', 'wrong password'],
    },
    {
      promise: 'blames the definition when a success holds no token',
      config: { token_request: { path: '/login' }, token_expression: 'body.token' },
      answers: [{ body: { tokn: 'a1' } }],
      sent: [{ path: '/login' }],
      failure: ['client_refused', 'no access token'],
    },
  ],
  jwt: [
    {
      promise: 'is its own token without an exchange',
      config: { algorithm: 'HS256', key: '{{key}}', claims: { iss: '{{issuer}}' }, ttl: 600 },
      credentials: { key: 'shared' },
      context: { issuer: 'me' },
      answers: [],
      sent: [],
      token: { access: '{"iat":1767225600,"exp":1767226200,"iss":"me"}', lifetime: 600 },
    },
    {
      promise: 'is exchanged for a token, as service accounts are',
      config: {
        algorithm: 'HS256',
        key: 'shared',
        claims: { scope: 'x', exp: 1767225900 },
        exchange: {
          request: { method: 'POST', path: '/token', body: { assertion: '{{args.assertion}}' }, body_format: 'form' },
        },
      },
      answers: [{ body: TOKEN }],
      sent: [{ body: { assertion: { iat: 1767225600, exp: 1767225900, scope: 'x' } } }],
      token: { access: 'a1', lifetime: 3600 },
    },
    {
      promise: 'reads the answer of a vendor of its own kind',
      config: {
        algorithm: 'HS256',
        key: 'shared',
        claims: {},
        exchange: {
          request: {
            method: 'POST',
            path: '/installations/{{installation}}',
            headers: { authorization: 'Bearer {{args.assertion}}' },
          },
          token_expression: 'body.token',
          expires_in_expression: 'body.expires_at',
        },
      },
      context: { installation: 7 },
      answers: [{ status: 201, body: { token: 'a1', expires_at: '2026-01-01T01:00:00Z' } }],
      sent: [{ path: '/installations/7' }],
      token: { access: 'a1', lifetime: 3600 },
    },
    {
      promise: 'blames the account for a key that does not fit',
      config: { algorithm: 'RS256', key: '{{key}}', claims: {} },
      credentials: { key: 'no key at all' },
      answers: [],
      sent: [],
      failure: ['grant_refused', 'not usable with RS256'],
    },
  ],
}
