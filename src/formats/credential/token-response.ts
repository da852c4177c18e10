import { getAtPath, isJsonObject, type Json, type JsonObject, parseDotPath, parseJson } from '../../base/index.ts'
import type { TokenError, TokenResponse } from './token.ts'

/** Whose secret a token request carries besides the grant, and therefore whose fault "unknown client" is. */
export type ClientOwner = 'account' | 'integration'

type TokenErrorKind = TokenError['kind']

/** Error codes of RFC 6749 §4.1.2.1 and §5.2, OpenID Connect, and well-known servers that have their own. */
const ERROR_KINDS: Readonly<Record<string, TokenErrorKind>> = {
  invalid_grant: 'grant_refused',
  access_denied: 'grant_refused',
  unauthorized_client: 'grant_refused',
  consent_required: 'grant_refused',
  interaction_required: 'grant_refused',
  login_required: 'grant_refused',
  invalid_client: 'client_refused',
  incorrect_client_credentials: 'client_refused',
  invalid_request: 'client_refused',
  invalid_scope: 'client_refused',
  unsupported_grant_type: 'client_refused',
  temporarily_unavailable: 'transient',
  server_error: 'transient',
  slow_down: 'transient',
}

/** Codes that blame the client; they blame the account where the client is the account's own. */
const CLIENT_ERROR_CODES: ReadonlySet<string> = new Set(['invalid_client', 'incorrect_client_credentials'])
const TRANSIENT_STATUSES: ReadonlySet<number> = new Set([408, 425, 429])
const GRANT_ERROR_STATUSES: ReadonlySet<number> = new Set([400, 401, 403, 422])

const CODE_PATHS = ['error', 'error.code', 'error.type'].map(parseDotPath)
const MESSAGE_PATHS = ['error_description', 'error.message', 'message', 'error_message', 'detail'].map(parseDotPath)
const MESSAGE_LENGTH_MAX = 300
const RETRY_AFTER_SECONDS_MAX = 3_600

/** The answer with its body read whatever its content type says: JSON, a form, else the text. */
export function parseLooseBody(response: TokenResponse): TokenResponse {
  return typeof response.body === 'string' ? { ...response, body: parseText(response.body.trim()) } : response
}

/** Whether an answer is no token, whatever else it holds: not a success, or a success that names an error. */
export function isTokenError({ status, body }: TokenResponse): boolean {
  return status < 200 || status > 299 || errorCode(body) !== undefined
}

/** Who has to do something about an answer that holds no token. @param response as `parseLooseBody` gives it */
export function tokenErrorFrom(response: TokenResponse, clientOwner: ClientOwner): TokenError {
  return {
    kind: kindOf(response, errorCode(response.body), clientOwner),
    message: messageOf(response),
    retryAfterSeconds: retryAfterOf(response),
  }
}

function kindOf({ status, body }: TokenResponse, code: string | undefined, clientOwner: ClientOwner): TokenErrorKind {
  if (status >= 500 || TRANSIENT_STATUSES.has(status)) return 'transient'
  if (code !== undefined && clientOwner === 'account' && CLIENT_ERROR_CODES.has(code)) return 'grant_refused'
  const known = code === undefined ? undefined : ERROR_KINDS[code]
  if (known !== undefined) return known
  if (status >= 300 && status < 400) return 'client_refused'
  // A page in HTML is not the token endpoint speaking: a firewall, a gateway, a maintenance notice.
  if (!isJsonObject(body) && (clientOwner === 'integration' || isMarkup(body))) return 'transient'
  if (code !== undefined) return 'grant_refused'
  if (status === 401 && clientOwner === 'integration') return 'client_refused'
  return GRANT_ERROR_STATUSES.has(status) ? 'grant_refused' : 'client_refused'
}

function messageOf({ status, body }: TokenResponse): string {
  const code = errorCode(body)
  const said = MESSAGE_PATHS.map((path) => getAtPath(body, path)).find(isText)
  const parts = [code, said === code ? undefined : said].filter((part) => part !== undefined)
  if (parts.length > 0) return parts.join(': ').slice(0, MESSAGE_LENGTH_MAX)
  return status < 300 && status >= 200
    ? 'the answer holds no access token where the definition looks for one'
    : `the answer was ${status}`
}

function errorCode(body: Json): string | undefined {
  return CODE_PATHS.map((path) => getAtPath(body, path)).find(isText)
}

function retryAfterOf({ headers }: TokenResponse): number | undefined {
  const seconds = Number(headers['retry-after'] ?? Number.NaN)
  return seconds >= 0 ? Math.min(seconds, RETRY_AFTER_SECONDS_MAX) : undefined
}

/** Longest answer that is read as a form; a token has some kilobytes. */
const FORM_LENGTH_MAX = 64 * 1024

function parseText(text: string): Json {
  if (/^[[{]/.test(text)) {
    try {
      return parseJson(text)
    } catch {
      return text
    }
  }
  const isForm = text.length <= FORM_LENGTH_MAX && /^[^\s<>=&]+=[^\s<>]*$/.test(text)
  return isForm ? formFields(text) : text
}

function formFields(text: string): JsonObject {
  return Object.fromEntries(new URLSearchParams(text))
}

function isMarkup(body: Json): boolean {
  return typeof body === 'string' && body.startsWith('<')
}

function isText(value: Json | undefined): value is string {
  return typeof value === 'string' && value !== ''
}
