import type { JsonObject } from '../../../foundation/json/index.ts'
import type { TemplateScope } from '../../expressions/placeholder.ts'
import { compileJson, compileTemplate, renderObject, renderText, renderValue } from '../../expressions/template.ts'
import { signJwt } from '../sign-jwt.ts'
import type { OAuth2Settings } from './oauth2-keys.ts'

/** Client authentication of a token request. */
interface ClientAuthentication {
  /** Value of the header `Authorization`. */
  readonly authorization: string | undefined
  readonly params: JsonObject
}

/** @param audience the address of the token endpoint, for an assertion @throws Failure PLACEHOLDER_UNRESOLVED, EXPRESSION_FAILED */
type AuthenticateClient = (
  scope: TemplateScope,
  context: { readonly now: () => Date; readonly nonce: () => string },
  audience: string,
) => ClientAuthentication | Promise<ClientAuthentication>

/** Lifetime of a client assertion. */
const ASSERTION_SECONDS = 300
const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

/** The client id. @throws Failure PLACEHOLDER_UNRESOLVED */
export function compileClientId({ client = {} }: OAuth2Settings): (scope: TemplateScope) => string {
  const id = compileTemplate(client.id ?? '{{client_id}}')
  return (scope) => renderText(id, scope)
}

/**
 * RFC 6749 §2.3.1 or RFC 7523 §2.2. A client without a secret is a public one: it sends its id as a parameter.
 */
export function compileClientAuthentication(settings: OAuth2Settings): AuthenticateClient {
  const { client = {}, options = {} } = settings
  const secretTemplate = compileTemplate(client.secret ?? '{{client_secret}}')
  const clientId = compileClientId(settings)
  if (options.authorizationMethod === 'private_key_jwt') return compileClientAssertion(client, clientId)
  const encode = options.credentialsEncodingMode === 'loose' ? identity : formEncode
  return (scope) => {
    const client_id = clientId(scope)
    const secret = renderValue(secretTemplate, scope) ?? undefined
    if (secret === undefined) return { authorization: undefined, params: { client_id } }
    if (options.authorizationMethod === 'body')
      return { authorization: undefined, params: { client_id, client_secret: String(secret) } }
    const pair = Buffer.from(`${encode(client_id)}:${encode(String(secret))}`).toString('base64')
    return { authorization: `Basic ${pair}`, params: {} }
  }
}

function compileClientAssertion(
  { private_key = '{{private_key}}', key_id, algorithm = 'RS256', claims = {} }: NonNullable<OAuth2Settings['client']>,
  clientId: (scope: TemplateScope) => string,
): AuthenticateClient {
  const key = compileTemplate(private_key)
  const keyId = key_id === undefined ? undefined : compileTemplate(key_id)
  const ownClaims = compileJson(claims)
  return async (scope, { now, nonce }, audience) => {
    const client_id = clientId(scope)
    const iat = Math.floor(now().getTime() / 1_000)
    const exp = iat + ASSERTION_SECONDS
    const client_assertion = await signJwt({
      algorithm,
      key: renderText(key, scope),
      keyId: keyId === undefined ? undefined : renderText(keyId, scope),
      claims: {
        iss: client_id,
        sub: client_id,
        aud: audience,
        jti: nonce(),
        iat,
        exp,
        ...renderObject(ownClaims, scope),
      },
    })
    return { authorization: undefined, params: { client_id, client_assertion_type: ASSERTION_TYPE, client_assertion } }
  }
}

function formEncode(text: string): string {
  return new URLSearchParams([['', text]]).toString().slice(1)
}

function identity(text: string): string {
  return text
}
