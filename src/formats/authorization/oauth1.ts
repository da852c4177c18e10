import { createHmac } from 'node:crypto'
import { z } from 'zod'
import { compileTemplate, renderText, type TemplateScope } from '../../expressions/index.ts'
import { withSchema } from '../format.ts'
import { secretText, templateText } from '../schema-types.ts'
import type { AuthorizationFormat, Authorize, UnauthorizedRequest } from './authorization.ts'

const config = z.strictObject({
  consumer_key: templateText().describe('Identifies the application.'),
  consumer_secret: secretText().describe('Secret of the application.'),
  token: templateText()
    .default('{{oauth.token.access_token}}')
    .describe("The account's token. Default: its access token."),
  token_secret: secretText().default('{{oauth.token.token_secret}}').describe('Default: `oauth.token.token_secret`.'),
  signature_method: z
    .enum(['HMAC-SHA1', 'HMAC-SHA256', 'PLAINTEXT'])
    .default('HMAC-SHA1')
    .describe('How the signature is computed.'),
  realm: templateText().optional().describe('Sent first in the header, not signed.'),
})

type OAuth1Config = z.output<typeof config>

/** `oauth1`: RFC 5849 in the Authorization header. */
export const oauth1: AuthorizationFormat = {
  format: 'oauth1',
  summary: 'Signs the request with OAuth 1.0a and sends the parameters in `Authorization: OAuth …`.',
  config,
  compile: withSchema(config, compileOAuth1),
}

function compileOAuth1(parsed: OAuth1Config): Authorize {
  const text = (template: string) => {
    const compiled = compileTemplate(template)
    return (scope: TemplateScope) => renderText(compiled, scope)
  }
  const consumerKey = text(parsed.consumer_key)
  const consumerSecret = text(parsed.consumer_secret)
  const token = text(parsed.token)
  const tokenSecret = text(parsed.token_secret)
  const realm = parsed.realm === undefined ? undefined : text(parsed.realm)
  return (request, scope, { now, nonce }) => {
    const parameters: Record<string, string> = {
      oauth_consumer_key: consumerKey(scope),
      oauth_nonce: nonce(),
      oauth_signature_method: parsed.signature_method,
      oauth_timestamp: String(Math.floor(now().getTime() / 1000)),
      oauth_token: token(scope),
      oauth_version: '1.0',
    }
    const key = `${percentEncode(consumerSecret(scope))}&${percentEncode(tokenSecret(scope))}`
    const base = signatureBase(request, parameters)
    const signed = { ...parameters, oauth_signature: sign(parsed.signature_method, key, base) }
    const pairs = Object.entries(signed).map(([name, value]) => `${name}="${percentEncode(value)}"`)
    const all = realm === undefined ? pairs : [`realm="${realm(scope)}"`, ...pairs]
    return { headers: { authorization: `OAuth ${all.join(', ')}` }, query: {} }
  }
}

function sign(method: OAuth1Config['signature_method'], key: string, base: string): string {
  if (method === 'PLAINTEXT') return key
  return createHmac(method === 'HMAC-SHA1' ? 'sha1' : 'sha256', key)
    .update(base)
    .digest('base64')
}

/** RFC 5849 §3.4.1: method, address and every parameter (protocol, query, form body), sorted by encoded bytes. */
function signatureBase(request: UnauthorizedRequest, parameters: Readonly<Record<string, string>>): string {
  const url = new URL(request.url)
  const pairs = [...Object.entries(parameters), ...url.searchParams, ...formPairs(request)]
    .map(([name, value]) => [percentEncode(name), percentEncode(value)] as const)
    .sort(([nameA, valueA], [nameB, valueB]) => compare(nameA, nameB) || compare(valueA, valueB))
  const normalised = pairs.map(([name, value]) => `${name}=${value}`).join('&')
  return [request.method, url.origin + url.pathname, normalised].map(percentEncode).join('&')
}

/** Only a form body is signed; other bodies are not part of the base string. */
function formPairs({ headers, body }: UnauthorizedRequest): Iterable<[string, string]> {
  const isForm = headers['content-type']?.startsWith('application/x-www-form-urlencoded') === true
  return isForm && typeof body === 'string' ? new URLSearchParams(body) : []
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** Percent-encodes all but the unreserved characters of RFC 3986 §2.3. */
function percentEncode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}
