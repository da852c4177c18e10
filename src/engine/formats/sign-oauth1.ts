import { createHmac } from 'node:crypto'
import type { UnauthorizedRequest } from './authorization/authorization.ts'

/** Signature methods of RFC 5849 §3.4; HMAC-SHA256 is a common addition. */
export const OAUTH1_METHODS = ['HMAC-SHA1', 'HMAC-SHA256', 'PLAINTEXT'] as const

/** Credentials and parameters of one signature. */
export interface OAuth1Input {
  readonly signatureMethod: (typeof OAUTH1_METHODS)[number]
  readonly consumerKey: string
  readonly consumerSecret: string
  /** Absent where a request token is requested. */
  readonly token: { readonly key: string; readonly secret: string } | undefined
  /** Further protocol parameters: `oauth_version`, `oauth_callback`, `oauth_verifier`. */
  readonly extra: Readonly<Record<string, string>>
  /** Sent first, not signed. */
  readonly realm?: string | undefined
  readonly nonce: string
  readonly now: Date
}

/** The value of the header `Authorization` that signs a request (RFC 5849 §3.5.1). */
export function signOAuth1(request: UnauthorizedRequest, input: OAuth1Input): string {
  const { signatureMethod, consumerKey, consumerSecret, token, extra, realm, nonce, now } = input
  const parameters: Record<string, string> = {
    oauth_consumer_key: consumerKey,
    oauth_nonce: nonce,
    oauth_signature_method: signatureMethod,
    oauth_timestamp: String(Math.floor(now.getTime() / 1000)),
    ...(token === undefined ? {} : { oauth_token: token.key }),
    ...extra,
  }
  const key = `${percentEncode(consumerSecret)}&${percentEncode(token?.secret ?? '')}`
  const oauth_signature = sign(signatureMethod, key, signatureBase(request, parameters))
  const pairs = Object.entries({ ...parameters, oauth_signature })
  const written = pairs.map(([name, value]) => `${name}="${percentEncode(value)}"`)
  return `OAuth ${(realm === undefined ? written : [`realm="${realm}"`, ...written]).join(', ')}`
}

function sign(method: OAuth1Input['signatureMethod'], key: string, base: string): string {
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
