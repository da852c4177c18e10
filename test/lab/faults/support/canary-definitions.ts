import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import type { Canaries } from './canaries.ts'

/** One way to authorise, and the secrets that its accounts are connected with. */
export interface PlantedIntegration {
  readonly name: string
  readonly config: JsonObject
  readonly override: JsonObject
  readonly account: JsonObject
}

const passwords = (...names: readonly string[]) => names.map((name) => ({ name, type: 'password' }))
const basis = (canaries: Canaries, name: string, url: string): JsonObject => ({
  base_url: url,
  headers: { 'x-api-key': canaries.of(`${name}.definition-header`), 'x-env': '{{env.API_SECRET}}' },
  retry: { max_attempts: 1 },
  error_expression:
    '$exists(body.fault) ? {"status": 422, "message": body.fault.text, "metadata": {"said": body.fault.said}, "headers": {"x-said": body.fault.said[0]}, "result": body.fault}',
  resources: {
    echo: {
      get: { path: '/{{id}}/x', query: { q: '{{env.API_SECRET}}' } },
      list: { path: '/{{query.mode}}/x', response_path: 'items', pagination: null },
      create: { method: 'POST', path: '/{{body.mode}}/x', body: { key: '{{env.API_SECRET}}' } },
      send: { method: 'POST', path: '/{{body.mode}}/x', body: { key: '{{env.API_SECRET}}' }, body_format: 'form' },
    },
  },
  actions: {
    probe: {
      steps: [
        { name: 'login', type: 'request', config: { method: 'POST', path: '/token' } },
        { type: 'update_context', config: { expression: '{"mode": args.mode}' } },
        {
          type: 'request',
          config: { method: 'POST', path: '/{{query.mode}}/x', body: { session: '{{$steps.login.session}}' } },
        },
      ],
    },
  },
})

/** Authorization by format, over fields of the account. */
const AUTHORIZATIONS: Readonly<Record<string, JsonObject>> = {
  bearer: { token: '{{api_key}}' },
  basic: { username: '{{user}}', password: '{{api_key}}' },
  header: { headers: { 'x-key': '{{api_key}}', 'x-other': 'Token {{user}}' } },
  query: { params: { key: '{{api_key}}' } },
  oauth1: { consumer_key: '{{user}}', consumer_secret: '{{api_key}}', token: 't', token_secret: '{{api_key}}' },
  aws_sigv4: { access_key_id: '{{user}}', secret_access_key: '{{api_key}}', region: 'r', service: 's' },
  jwt: { algorithm: 'HS256', key: '{{api_key}}', claims: { iss: '{{user}}' } },
}
export const AUTHORIZATION_NAMES = Object.keys(AUTHORIZATIONS)

/** An integration whose requests are authorised by the format, with a secret in every slot it has. */
export function authorised(canaries: Canaries, format: string, url: string): PlantedIntegration {
  const name = format.replaceAll('_', '-')
  return {
    name,
    config: {
      ...basis(canaries, name, url),
      credentials: { format: 'api_key', config: { fields: passwords('api_key', 'user') } },
      authorization: { format, config: AUTHORIZATIONS[format] ?? {} },
    },
    override: overrideOf(canaries, name),
    account: { credentials: { api_key: canaries.of(`${name}.api_key`), user: canaries.of(`${name}.user`) } },
  }
}

function overrideOf(canaries: Canaries, name: string): JsonObject {
  return {
    environment_variables: { API_SECRET: canaries.of(`${name}.variable`) },
    headers: { 'x-secret-of-override': canaries.of(`${name}.override-header`) },
  }
}

/** Integrations whose accounts fail to connect, or whose tokens are rejected, with an echo. */
export function rejectedIntegrations(canaries: Canaries, url: string, mode: string): readonly PlantedIntegration[] {
  const plant = (kind: string, credentials: JsonObject, given: JsonObject, more: JsonObject = {}) => {
    const name = `${kind}-${mode}`
    const { actions: _, ...config } = basis(canaries, name, url)
    const authorization = { format: 'bearer', config: { token: '{{oauth.token.access_token|api_key}}' } }
    return {
      name,
      config: { ...config, credentials, authorization, ...more },
      override: overrideOf(canaries, name),
      account: { credentials: given },
    }
  }
  const client = (name: string) => ({ id: 'app', secret: canaries.of(`${name}-${mode}.client-secret`) })
  const auth = { tokenHost: url, tokenPath: `/${mode}/token`, refreshPath: `/${mode}/refresh` }
  const api_key = (verification?: JsonObject) => ({
    format: 'api_key',
    config: { fields: passwords('api_key'), ...(verification === undefined ? {} : { verification }) },
  })
  const key = (kind: string) => ({ api_key: canaries.of(`${kind}-${mode}.api_key`) })
  const step = (path: string) => ({ type: 'request', config: { method: 'POST', path, body: { k: '{{api_key}}' } } })
  return [
    plant('verified', api_key({ path: `/${mode}/verify` }), key('verified')),
    plant('installed', api_key(), key('installed'), { actions: { post_install: step(`/${mode}/install`) } }),
    plant('validated', api_key(), key('validated'), {
      actions: {
        post_install: { steps: [step('/repeat/x'), { type: 'update_context' }] },
        validation: step(`/${mode}/validate`),
      },
    }),
    plant(
      'oauth2',
      { format: 'oauth2', config: { client: client('oauth2'), auth } },
      {
        access_token: canaries.of(`oauth2-${mode}.access`),
        refresh_token: canaries.of(`oauth2-${mode}.refresh`),
        expires_in: 0,
      },
    ),
    plant(
      'oauth2-body',
      { format: 'oauth2', config: { client: client('oauth2-body'), auth, options: { authorizationMethod: 'body' } } },
      {
        access_token: canaries.of(`oauth2-body-${mode}.access`),
        refresh_token: canaries.of(`oauth2-body-${mode}.refresh`),
        expires_in: 0,
      },
    ),
    plant(
      'client-credentials',
      { format: 'oauth2_client_credentials', config: { auth, fields: passwords('client_id', 'client_secret') } },
      { client_id: 'app', client_secret: canaries.of(`client-credentials-${mode}.client_secret`) },
    ),
    plant(
      'vendor',
      {
        format: 'vendor_oauth',
        config: {
          fields: passwords('login'),
          token_request: [
            { method: 'POST', path: '/token', body: { login: '{{login}}' } },
            { method: 'POST', path: `/${mode}/x`, body: { session: '{{args.step1.body.session}}', l: '{{login}}' } },
          ],
          token_expression: 'body.access_token',
        },
      },
      { login: canaries.of(`vendor-${mode}.login`) },
    ),
    plant(
      'assertion',
      {
        format: 'jwt',
        config: {
          fields: passwords('key'),
          algorithm: 'HS256',
          key: '{{key}}',
          claims: { iss: 'app' },
          exchange: { request: { method: 'POST', path: `/${mode}/x`, body: { assertion: '{{args.assertion}}' } } },
        },
      },
      { key: canaries.of(`assertion-${mode}.key`) },
    ),
  ]
}

/** An integration whose tokens come from the token endpoint, and whose API then rejects them with an echo. */
export function tokenIntegration(canaries: Canaries, url: string): PlantedIntegration {
  return {
    name: 'tokens',
    config: {
      ...basis(canaries, 'tokens', url),
      credentials: {
        format: 'oauth2_client_credentials',
        config: {
          auth: { tokenHost: url, tokenPath: '/token' },
          fields: passwords('client_id', 'client_secret'),
          context_from_token: { leaked: 'refresh_token', lifetime: 'expires_in' },
        },
      },
      authorization: { format: 'bearer', config: { token: '{{oauth.token.access_token}}' } },
    },
    override: overrideOf(canaries, 'tokens'),
    account: { credentials: { client_id: 'app', client_secret: canaries.of('tokens.client_secret') } },
  }
}
