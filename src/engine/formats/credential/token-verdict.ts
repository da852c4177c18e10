import { isTransientStatus } from '../../../foundation/egress/index.ts'
import { getAtPath, type Json, parseDotPath } from '../../../foundation/json/index.ts'
import type { TokenError } from './credential.ts'

/** Whose client credentials a token request carries, and therefore whose error "unknown client" is. */
export type ClientOwner = 'account' | 'integration'

/** Whose matter an error is, see `TokenError`. */
export type TokenVerdict = TokenError['kind']

/** What a verdict is read of. */
export interface TokenErrorFacts {
  readonly status: number
  readonly body: Json
  /** The error code in the body, as the server writes it. */
  readonly code: string | undefined
  /** The text for people in the body. */
  readonly text: string | undefined
  readonly clientOwner: ClientOwner
}

/** Error codes of RFC 6749 §4.1.2.1 and §5.2, of OpenID Connect, and of well-known servers. */
const CODES: Readonly<Record<string, TokenVerdict>> = {
  invalid_grant: 'grant_refused',
  access_denied: 'grant_refused',
  unauthorized_client: 'grant_refused',
  consent_required: 'grant_refused',
  interaction_required: 'grant_refused',
  login_required: 'grant_refused',
  invalid_auth: 'grant_refused',
  not_authed: 'grant_refused',
  incorrect_client_credentials: 'client_refused',
  unsupported_grant_type: 'client_refused',
}

/** What a code is about, without separators, and what is said of it: only both together are a sign against the account. */
const CODE_SUBJECT = 'token|grant|consent|session|password|credential|account|user'
const CODE_FAULT =
  'invalid|expired|revoked|notfound|bad|incorrect|wrong|unknown|inactive|disabled|suspended|deactivated|locked'

/** Codes that servers make themselves, without separators; the first match counts. */
const CODE_PATTERNS: readonly (readonly [RegExp, TokenVerdict])[] = [
  [
    /ratelimit|toomany|throttl|slowdown|temporar|unavailable|internal|servererror|fatalerror|timeout|timedout|overload|maintenance|^busy/,
    'transient',
  ],
  [/client|scope|redirect|granttype|tokentype|appid|appsecret|application/, 'client_refused'],
  [new RegExp(`(${CODE_SUBJECT}).*(${CODE_FAULT})|(${CODE_FAULT}).*(${CODE_SUBJECT})`), 'grant_refused'],
]

/** Texts beside no code, or one that says too little; the first match counts. */
const TEXT_PATTERNS: readonly (readonly [RegExp, TokenVerdict])[] = [
  [
    /try again (later|in )|rate.?limit|too many requests|throttl|temporar|unavailable|overload|maintenance|timed? ?out|internal (server )?error/i,
    'transient',
  ],
  [/\bmissing\b|\bparameter\b|unsupported|not supported/i, 'client_refused'],
  [
    /(token|grant|consent|session)\b.*\b(invalid|expired|revoked|not valid|no longer|not found|not exist|inactive|incorrect|wrong|unknown|malformed|already (been )?used)\b/i,
    'grant_refused',
  ],
  [
    /\b(invalid|expired|revoked|inactive|incorrect|wrong|unknown|bad)\b.*(token|grant|consent|session)\b/i,
    'grant_refused',
  ],
  [/\bclient\b|client_(id|secret)/i, 'client_refused'],
  [
    /(password|credentials)\b.*\b(invalid|incorrect|wrong)\b|\b(invalid|incorrect|wrong)\b.*(password|credentials)\b/i,
    'grant_refused',
  ],
]

/** Codes that say no more than that the request was not accepted. */
const VAGUE_CODES: ReadonlySet<string> = new Set([
  'invalid_request',
  'bad_request',
  'invalid_argument',
  'oauthexception',
])
/** Codes about the client; they are errors of the account where the client is the account's own. */
const CLIENT_CODES: ReadonlySet<string> = new Set(['invalid_client', 'incorrect_client_credentials'])
/** Statuses with which a server refuses what it was sent, and not the address or the method. */
const REFUSAL_STATUSES: ReadonlySet<number> = new Set([400, 401, 403, 422])
const IS_TRANSIENT_PATHS = ['is_transient', 'error.is_transient'].map(parseDotPath)

/**
 * The verdict on a token response that is an error: whose matter it is. The first of these that says something decides: the
 * status, a mark in the body, the code, a redirect, the kind of body, the text, and then the status again.
 */
export function tokenVerdict(facts: TokenErrorFacts): TokenVerdict {
  const { status, body, code, clientOwner } = facts
  if (isTransientStatus(status) || IS_TRANSIENT_PATHS.some((path) => getAtPath(body, path) === true)) return 'transient'
  const known = code === undefined ? undefined : verdictOfCode(code, clientOwner)
  if (known !== undefined) return known
  if (status >= 300 && status < 400) return 'client_refused'
  // What is no object does not come from the token endpoint but from a firewall, a gateway or a maintenance page.
  const isObject = typeof body === 'object' && body !== null && !Array.isArray(body)
  const isPage = typeof body === 'string' && body.startsWith('<')
  if (!isObject && (clientOwner === 'integration' || isPage)) return 'transient'
  return verdictOfText(facts) ?? verdictOfStatus(facts)
}

function verdictOfCode(given: string, clientOwner: ClientOwner): TokenVerdict | undefined {
  const code = given.toLowerCase()
  if (clientOwner === 'account' && CLIENT_CODES.has(code)) return 'grant_refused'
  if (VAGUE_CODES.has(code)) return undefined
  const bare = code.replace(/[^a-z0-9]/g, '')
  return CODES[code] ?? CODE_PATTERNS.find(([pattern]) => pattern.test(bare))?.[1]
}

function verdictOfText({ text, clientOwner, code }: TokenErrorFacts): TokenVerdict | undefined {
  if (text === undefined) return undefined
  const verdict = TEXT_PATTERNS.find(([pattern]) => pattern.test(text))?.[1]
  // A text that names the client is the account's matter where the client is.
  return verdict === 'client_refused' && clientOwner === 'account' && code === undefined ? 'grant_refused' : verdict
}

/** An error that says nothing about its cause. */
function verdictOfStatus({ status, code, clientOwner }: TokenErrorFacts): TokenVerdict {
  if (code?.toLowerCase() === 'invalid_request') return 'client_refused'
  if (code === undefined && status === 401 && clientOwner === 'integration') return 'client_refused'
  if (code === undefined && !REFUSAL_STATUSES.has(status)) return 'client_refused'
  // The account's own secret is not sent again and again: many servers lock the user then.
  return clientOwner === 'account' ? 'grant_refused' : 'unclear'
}
