import { createHmac } from 'node:crypto'
import type { JsonObject } from '../../../../../src/foundation/json/index.ts'
import type { ScriptedExchange } from '../../../../support/upstream.ts'
import { type Consent, NOW, REDIRECT_URI, STATE } from '../consent-fixture.ts'

/** One deviation of a provider: with these settings, consent, exchange, refresh and revocation are like this. */
export interface ConsentRow extends Consent {
  /** What the provider does, and who does it. */
  readonly quirk: string
  /** The consent page: the address without parameters, and what its parameters are. */
  readonly address?: string
  readonly params?: Readonly<Record<string, string>>
  /** Parameters that must not be sent. */
  readonly absent?: readonly string[]
  /** A part of the address as it is written. */
  readonly written?: string
  /** Parameters with which the browser comes back. Default: a code. */
  readonly returned?: Readonly<Record<string, string>>
  readonly exchange?: readonly ScriptedExchange[]
  readonly granted?: Granted
  /** Error code, and a part of the message. */
  readonly failed?: readonly [code: string, message: string]
  readonly refresh?: readonly ScriptedExchange[]
  readonly refreshed?: Granted
  readonly revoke?: readonly ScriptedExchange[]
  readonly revoked?: JsonObject
}

/** What a token is expected to be. */
interface Granted {
  readonly access?: string
  readonly refresh?: string
  /** Seconds; null: the token has no known end. */
  readonly lifetime?: number | null
  readonly context?: JsonObject
  readonly missing?: readonly string[]
}

/** A form as it is on the wire. */
export function form(params: Readonly<Record<string, string>>): string {
  return Object.entries(params)
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join('&')
}

const HOST = '{{env.HOST}}'
const CLIENT = { id: 'app', secret: 'app-secret' }
const BODY = { client_id: 'app', client_secret: 'app-secret' }
/** Settings of most rows: the client in the body and no PKCE, so that requests can be written down. */
const BASE = {
  client: CLIENT,
  auth: { tokenHost: HOST, tokenPath: '/token', authorizePath: '/authorize' },
  options: { authorizationMethod: 'body' },
  pkce: false,
} as const
const CODE = { grant_type: 'authorization_code', code: 'the-code', redirect_uri: REDIRECT_URI }
const TOKEN = { access_token: 'access-1', refresh_token: 'refresh-1', expires_in: 3600, token_type: 'bearer' }
const BASIC = `Basic ${Buffer.from('app:app-secret').toString('base64')}`
const FORM_TYPE = 'application/x-www-form-urlencoded'

/** The exchange of most rows. */
function exchanged(extra: Readonly<Record<string, string>>, json: JsonObject = TOKEN): ScriptedExchange {
  return { request: 'POST /token', body: form({ ...CODE, ...extra }), answer: { json } }
}

const STANDARD = exchanged(BODY)

function hmac(text: string): string {
  return createHmac('sha256', 'app-secret').update(text).digest('hex')
}

const NOW_MS = String(NOW.getTime())

export const ADDRESS_ROWS: readonly ConsentRow[] = [
  {
    quirk: 'nothing: standard parameters, client in the header',
    config: { ...BASE, options: {}, scope: ['read', 'write'] },
    address: '/authorize',
    params: {
      client_id: 'app',
      redirect_uri: REDIRECT_URI,
      response_type: 'code',
      scope: 'read write',
      state: STATE,
    },
    absent: ['code_challenge', 'code_challenge_method'],
    exchange: [
      { ...exchanged({}), headers: { authorization: BASIC, 'content-type': FORM_TYPE, accept: 'application/json' } },
    ],
    granted: { access: 'access-1', refresh: 'refresh-1', lifetime: 3600, missing: [] },
  },
  {
    quirk: 'addresses with variables of the account: Zendesk, Shopify, ServiceNow',
    config: {
      ...BASE,
      fields: [{ name: 'shop' }],
      auth: { tokenHost: `${HOST}/shops/{{shop}}`, tokenPath: '/{{shop}}/token', authorizePath: '/{{shop}}/authorize' },
    },
    fields: { shop: 'a b' },
    address: '/shops/a%20b/a%20b/authorize',
    exchange: [{ ...STANDARD, request: 'POST /shops/a%20b/a%20b/token' }],
  },
  {
    quirk: 'authorisation at another host: most',
    config: { ...BASE, auth: { ...BASE.auth, authorizeHost: `${HOST}/login`, authorizePath: 'oauth2/auth' } },
    address: '/login/oauth2/auth',
    exchange: [STANDARD],
  },
  {
    quirk: 'scopes with a comma: Figma, Slack, Linear',
    config: { ...BASE, scope: ['a:read', 'b:write'], options: { ...BASE.options, scopeSeparator: ',' } },
    params: { scope: 'a:read,b:write' },
    exchange: [STANDARD],
  },
  {
    quirk: 'scopes with a plus sign that is not encoded: Pennylane, Workable, Attio MCP',
    config: {
      ...BASE,
      scope: ['r_jobs', 'r:all'],
      options: { ...BASE.options, scopeSeparator: '+' },
      authorize: { raw: ['scope'] },
    },
    written: '&scope=r_jobs+r:all&',
    exchange: [STANDARD],
  },
  {
    quirk: 'a raw value adds no parameter and no fragment',
    config: {
      ...BASE,
      fields: [{ name: 'team' }],
      authorizeParams: { team: '{{team}}' },
      authorize: { raw: ['team'] },
    },
    fields: { team: 'a&state=x#y z' },
    written: '&team=a%26state=x%23y%20z',
    params: { state: STATE },
    exchange: [STANDARD],
  },
  {
    quirk: 'scopes that are always requested, and those of the session once: 68 providers',
    config: { ...BASE, scope: ['offline_access', 'read'], optional_scope: ['write'] },
    scopes: ['write', 'read'],
    params: { scope: 'offline_access read write' },
    exchange: [STANDARD],
  },
  {
    quirk: 'further parameters: prompt, access_type, audience, response_mode, nonce, owner, JSON',
    config: {
      ...BASE,
      authorizeParams: {
        prompt: 'consent',
        access_type: 'offline',
        audience: 'https://{{env.AUDIENCE}}/',
        response_mode: 'query',
        nonce: '{{random}}',
        back: '{{connection.redirect_uri}}',
        claims: { id_token: null },
      },
    },
    environmentVariables: { AUDIENCE: 'api.example.com' },
    params: {
      prompt: 'consent',
      access_type: 'offline',
      audience: 'https://api.example.com/',
      response_mode: 'query',
      back: REDIRECT_URI,
      claims: '{"id_token":null}',
    },
    written: '&nonce=',
    exchange: [STANDARD],
  },
  {
    quirk: 'renamed parameters in both directions: TikTok client_key',
    config: {
      ...BASE,
      scope: ['user.info.basic'],
      authorize: { parameter_names: { client_id: 'client_key' } },
      token: { parameter_names: { client_id: 'client_key' } },
    },
    params: { client_key: 'app' },
    absent: ['client_id'],
    exchange: [exchanged({ client_key: 'app', client_secret: 'app-secret' })],
    refresh: [
      {
        request: 'POST /token',
        body: form({
          grant_type: 'refresh_token',
          refresh_token: 'refresh-1',
          client_key: 'app',
          client_secret: 'app-secret',
        }),
        answer: { json: { access_token: 'access-2', refresh_token: 'refresh-2', expires_in: 60 } },
      },
    ],
    refreshed: { access: 'access-2', refresh: 'refresh-2', lifetime: 60 },
  },
  {
    quirk: 'renamed redirect_uri: Printful redirect_url; clientId: Walmart',
    config: {
      ...BASE,
      authorize: { parameter_names: { redirect_uri: 'redirect_url', client_id: 'clientId' } },
      token: { parameter_names: { redirect_uri: 'redirect_url', client_id: 'clientId' } },
    },
    params: { redirect_url: REDIRECT_URI, clientId: 'app' },
    absent: ['redirect_uri', 'client_id'],
    exchange: [
      {
        ...STANDARD,
        body: form({
          grant_type: 'authorization_code',
          code: 'the-code',
          redirect_url: REDIRECT_URI,
          clientId: 'app',
          client_secret: 'app-secret',
        }),
      },
    ],
  },
  {
    quirk: 'no response_type: Monday; no redirect_uri and no client_id: Amazon SP',
    config: {
      ...BASE,
      authorize: { omit: ['response_type', 'redirect_uri', 'client_id'] },
      authorizeParams: { application_id: '{{env.APP_ID}}' },
      token: { omit: ['redirect_uri'] },
    },
    environmentVariables: { APP_ID: 'amzn1.app' },
    params: { application_id: 'amzn1.app', state: STATE },
    absent: ['response_type', 'redirect_uri', 'client_id'],
    exchange: [{ ...STANDARD, body: form({ grant_type: 'authorization_code', code: 'the-code', ...BODY }) }],
  },
  {
    quirk: 'another response_type: DATEV, FollowUpBoss; type=web_server: Basecamp',
    config: { ...BASE, authorizeParams: { response_type: 'code id_token', type: 'web_server' } },
    params: { response_type: 'code id_token', type: 'web_server' },
    exchange: [STANDARD],
  },
  {
    quirk: 'parameters behind a # of the address: Apollo, Shopline',
    config: { ...BASE, auth: { ...BASE.auth, authorizePath: '/#/oauth/authorize' } },
    written: '/#/oauth/authorize?client_id=app&',
    exchange: [STANDARD],
  },
  {
    quirk: 'a query of its own and a fragment at the end',
    config: {
      ...BASE,
      auth: { ...BASE.auth, authorizePath: '/authorize?tenant=1' },
      authorize: { fragment: 'wechat_redirect' },
    },
    written: `/authorize?tenant=1&client_id=app&redirect_uri=${encodeURIComponent(REDIRECT_URI)}&response_type=code&state=${STATE}#wechat_redirect`,
    exchange: [STANDARD],
  },
  {
    quirk: 'empty parameters are errors: Pipedrive, Dropbox Sign',
    config: { ...BASE, scope: [], authorizeParams: { team: '{{env.TEAM?:}}', none: '{{env.NONE}}', list: [] } },
    absent: ['scope', 'team', 'none', 'list'],
    exchange: [STANDARD],
  },
  {
    quirk: 'empty parameters are required',
    config: { ...BASE, options: { ...BASE.options, sendEmpty: true }, authorizeParams: { team: '{{env.TEAM?:}}' } },
    params: { team: '' },
    exchange: [STANDARD],
  },
]

export const EXCHANGE_ROWS: readonly ConsentRow[] = [
  {
    quirk: 'token parameters in JSON: Braintree, Cal.com, Shopify',
    config: { ...BASE, options: { ...BASE.options, bodyFormat: 'json' } },
    exchange: [
      {
        request: 'POST /token',
        headers: { 'content-type': 'application/json' },
        body: { ...CODE, ...BODY },
        answer: { json: TOKEN },
      },
    ],
    granted: { access: 'access-1' },
  },
  {
    quirk: 'token parameters in the address: Transporeon',
    config: { ...BASE, options: { ...BASE.options, bodyFormat: 'query' }, tokenParams: { extra: 'e x' } },
    exchange: [
      {
        request: `POST /token?grant_type=authorization_code&code=the-code&redirect_uri=${encodeURIComponent(REDIRECT_URI)}&client_id=app&client_secret=app-secret&extra=e%20x`,
        body: '',
        answer: { json: TOKEN },
      },
    ],
    granted: { access: 'access-1' },
  },
  {
    quirk: 'a token request by GET: Facebook',
    config: { ...BASE, token: { method: 'GET' } },
    exchange: [
      {
        request: `GET /token?grant_type=authorization_code&code=the-code&redirect_uri=${encodeURIComponent(REDIRECT_URI)}&client_id=app&client_secret=app-secret`,
        answer: { json: TOKEN },
      },
    ],
    granted: { access: 'access-1' },
  },
  {
    quirk: 'further headers and parameters: Veeva, pVerify, Dynamics resource',
    config: { ...BASE, tokenHeaders: { 'X-App': '{{env.APP}}' }, tokenParams: { resource: 'https://api/' } },
    environmentVariables: { APP: 'one' },
    exchange: [{ ...exchanged({ ...BODY, resource: 'https://api/' }), headers: { 'x-app': 'one' } }],
  },
  {
    quirk: 'a scheme of its own in the Authorization header: Workday ID',
    config: {
      ...BASE,
      token: { omit: ['client_id', 'client_secret'], values: { pair: '$base64encode("app:" & credentials.pin)' } },
      fields: [{ name: 'pin', type: 'password' }],
      tokenHeaders: { Authorization: 'ID {{args.values.pair}}' },
    },
    fields: { pin: 'the-pin' },
    exchange: [{ ...exchanged({}), headers: { authorization: `ID ${Buffer.from('app:the-pin').toString('base64')}` } }],
  },
  {
    quirk: 'id and secret inside HTTP Basic as they are: servers that do not decode them',
    config: {
      ...BASE,
      client: { id: 'a:b', secret: 's+1' },
      options: { authorizationMethod: 'header', credentialsEncodingMode: 'loose' },
    },
    exchange: [{ ...exchanged({}), headers: { authorization: `Basic ${Buffer.from('a:b:s+1').toString('base64')}` } }],
  },
  {
    quirk: 'a public client: no secret, its id as a parameter',
    config: { ...BASE, client: { id: 'app' } },
    exchange: [{ ...exchanged({ client_id: 'app' }), headers: { authorization: null } }],
  },
  {
    quirk: 'a request signed over its body: Shopline',
    config: {
      ...BASE,
      client: { id: 'app', secret: '{{env.CLIENT_SECRET}}' },
      options: { authorizationMethod: 'body', bodyFormat: 'json' },
      authorize: { parameter_names: { client_id: 'appKey', redirect_uri: 'redirectUri', state: 'customField' } },
      token: {
        omit: ['grant_type', 'redirect_uri', 'client_id', 'client_secret'],
        values: {
          body: '"{\\"code\\":\\"" & params.code & "\\"}"',
          sign: '$hmac(values.body & $string(now), environment_variables.CLIENT_SECRET)',
          timestamp: '$string(now)',
        },
      },
      tokenHeaders: { appkey: 'app', timestamp: '{{args.values.timestamp}}', sign: '{{args.values.sign}}' },
    },
    environmentVariables: { CLIENT_SECRET: 'app-secret' },
    params: { appKey: 'app', customField: STATE, redirectUri: REDIRECT_URI },
    absent: ['client_id', 'state', 'redirect_uri'],
    exchange: [
      {
        request: 'POST /token',
        headers: { appkey: 'app', timestamp: NOW_MS, sign: hmac(`{"code":"the-code"}${NOW_MS}`) },
        body: { code: 'the-code' },
        answer: { json: TOKEN },
      },
    ],
  },
  {
    quirk: 'another name of the code: Amazon SP spapi_oauth_code',
    config: { ...BASE, authorize: { code_parameter: 'spapi_oauth_code' } },
    returned: { spapi_oauth_code: 'the-code', state: STATE, selling_partner_id: 'A1' },
    exchange: [STANDARD],
    granted: { access: 'access-1' },
  },
  {
    quirk: 'a code that is encoded once more: Square',
    config: { ...BASE, authorize: { decode_code: true } },
    returned: { code: 'the%2Dcode', state: STATE },
    exchange: [STANDARD],
  },
  {
    quirk: 'a redirect that confirms the consent alone: Microsoft admin consent',
    config: {
      ...BASE,
      grant: 'client_credentials',
      auth: { ...BASE.auth, tokenPath: '/{{tenant}}/token' },
      scope: ['https://graph.example.com/.default'],
      context_from_redirect: { tenant: 'tenant' },
    },
    returned: { tenant: 't-1', admin_consent: 'True', state: STATE },
    exchange: [
      {
        request: 'POST /t-1/token',
        body: form({ grant_type: 'client_credentials', scope: 'https://graph.example.com/.default', ...BODY }),
        answer: { json: { access_token: 'access-1', expires_in: 60 } },
      },
    ],
    granted: { access: 'access-1', lifetime: 60, context: { tenant: 't-1' } },
  },
  {
    quirk: 'context from the redirect: QuickBooks realmId, Clover, Braintree; never the code',
    config: {
      ...BASE,
      context_from_redirect: {
        realm_id: 'realmId',
        merchant: 'merchantId',
        leaked: 'code',
        also: 'state',
        copy: 'copy',
      },
    },
    returned: { code: 'the-code', state: STATE, realmId: '123', copy: 'the-code' },
    exchange: [STANDARD],
    granted: { context: { realm_id: '123' } },
  },
  {
    quirk: 'the token host in the redirect: Zoho accounts-server',
    config: {
      ...BASE,
      auth: { ...BASE.auth, tokenHost: '{{accounts_server}}', authorizeHost: HOST },
      context_from_redirect: {
        accounts_server: { parameter: 'accounts-server', pattern: 'http://127\\.0\\.0\\.1:[0-9]+' },
      },
    },
    returned: { code: 'the-code', state: STATE, 'accounts-server': HOST },
    exchange: [STANDARD],
    granted: { access: 'access-1', context: { accounts_server: HOST } },
  },
  {
    quirk: 'a token host in the redirect that is not one of the provider',
    config: {
      ...BASE,
      auth: { ...BASE.auth, tokenHost: '{{accounts_server}}', authorizeHost: HOST },
      context_from_redirect: {
        accounts_server: { parameter: 'accounts-server', pattern: 'https://accounts\\.zoho\\.[a-z.]+' },
      },
    },
    returned: { code: 'the-code', state: STATE, 'accounts-server': HOST },
    failed: ['provider_error', 'accounts-server'],
  },
]
