import { Failure } from '../../foundation/base/index.ts'
import { isJsonNumber, isJsonObject, type Json, type JsonObject, parseJson } from '../../foundation/json/index.ts'
import { Redactor, SECRET_MASK } from '../../foundation/redaction/index.ts'
import { secretTexts } from '../definitions/config-values.ts'
import type { Plan } from '../definitions/plan.ts'
import { isSecretName } from '../expressions/environment-variables.ts'
import type { AuthorizationEffect } from '../formats/authorization/authorization.ts'
import type { ListingState } from '../formats/pagination/listing.ts'
import { mapQuery } from '../formats/query-string.ts'
import type { RateLimitedOutcome, RateLimitInfo, UpstreamErrorOutcome } from './outcome.ts'
import type { AccountAccess } from './request.ts'
import type { RequestLine } from './request-line.ts'

/** Names of fields of a token response that are about a token and no secrets: its kind, its end, an address. */
const PUBLIC_TOKEN_FIELD = /(?:type|url|endpoint|expir\w*|lifetime|ttl)$/i

/** Long texts without blanks are treated as tokens: signatures, sessions, results of action steps. Addresses and UUIDs are none. */
const TOKEN = /^(?!https?:|urn:|[^@\s]+@|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$)\S{16,}$/i
/** Limits of the search for tokens in the results of steps. */
const TOKENS_MAX = 1_000
const LEAVES_MAX = 10_000

/** What of a definition decides what is secret in a call. */
export type SecretRules = Pick<Plan, 'secrets' | 'tokenFieldsSent'>

/** A redactor with the secrets of a call. Those that the call gets later (refreshed credentials, signatures) are added to it. */
export function createRedaction(plan: SecretRules, access: SecretHolder): Redactor {
  return new Redactor(() => callSecrets(plan, access))
}

type SecretHolder = Pick<AccountAccess, 'credentials' | 'environmentVariables'>

/**
 * The secrets of a call, and only they: what the definition holds encrypted, its variables whose names say secret, what was
 * collected as password or brought encrypted by a webhook, and of a token response the tokens, what the definition sends as
 * credential, and what is named like one. Addresses, versions, names and ids in a token response are data.
 */
export function callSecrets({ secrets, tokenFieldsSent }: SecretRules, access: SecretHolder): string[] {
  const { oauth = null, ...collected } = access.credentials
  return [
    ...secrets,
    ...Object.values(collected).flatMap(textsIn),
    ...tokenTexts(oauth, tokenFieldsSent),
    ...secretTexts({ environment_variables: access.environmentVariables }),
  ]
}

/** The secrets of an authorization: its values, and the tokens and signatures within them. */
export function authorizationSecrets({ headers, query }: AuthorizationEffect): string[] {
  return [...Object.values(headers), ...Object.values(query)].flatMap((value) => {
    const words = value.split(/[\s,"]+/)
    return [value, ...words, ...words.map((word) => word.replace(/^[\w-]+=/, ''))].filter((text) => TOKEN.test(text))
  })
}

/** The texts in a value that look like tokens, up to `TOKENS_MAX`. */
export function tokensIn(value: Json): string[] {
  const open: Json[] = [value]
  const tokens: string[] = []
  for (let looked = 0; open.length > 0 && looked < LEAVES_MAX && tokens.length < TOKENS_MAX; looked++) {
    const next = open.pop()
    if (typeof next === 'string' && TOKEN.test(next)) tokens.push(next)
    else if (isJsonObject(next) || Array.isArray(next)) for (const inner of Object.values(next)) open.push(inner)
  }
  return tokens
}

/** Length of the message of an error. */
const MESSAGE_LENGTH_MAX = 500

/** An error or rate limit with the text of the third party redacted, and its message then cut. */
export function redactOutcome<Outcome extends UpstreamErrorOutcome | RateLimitedOutcome>(
  redaction: Redactor,
  outcome: Outcome,
): Outcome {
  const body = redaction.redactJson(outcome.body)
  if (outcome.kind === 'rate_limited') return { ...outcome, body }
  const metadata = redaction.redactJson(outcome.metadata)
  return {
    ...outcome,
    body,
    message: redaction.redactCut(outcome.message, MESSAGE_LENGTH_MAX),
    metadata: isJsonObject(metadata) ? metadata : {},
    headers: redaction.redactMap(outcome.headers),
    ownHeaders: redaction.redactMap(outcome.ownHeaders),
    ...(outcome.result === undefined ? {} : { result: redaction.redactJson(outcome.result) }),
  }
}

/**
 * The state of a listing with references instead of secrets in the query of its links: third parties repeat the credential in
 * their next links, and states are stored and returned to callers.
 */
export function maskLinkSecrets(redaction: Redactor, state: ListingState): ListingState {
  return { ...state, position: mapLinks(state.position, (value) => redaction.placeholderFor(value) ?? value) }
}

/** The state with the secrets of its links restored. A reference to an old secret is dropped: authorization adds the new one. */
export function restoreLinkSecrets(redaction: Redactor, state: ListingState): ListingState {
  const reveal = (value: string) => (value.startsWith(SECRET_MASK) ? redaction.resolvePlaceholder(value) : value)
  return { ...state, position: mapLinks(state.position, reveal) }
}

function mapLinks(value: JsonObject, change: (parameter: string) => string | undefined): JsonObject {
  const map = (item: Json): Json => {
    if (isJsonObject(item)) return mapLinks(item, change)
    if (Array.isArray(item)) return item.map((each: Json) => map(each))
    return typeof item === 'string' && /^https?:/i.test(item) ? mapQuery(item, change) : item
  }
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, map(item)]))
}

/** Numbers are not searched for secrets, so most successful calls need no index of secrets. */
const NUMBER = /^\d{1,19}$/

/** Rate limit information, which becomes headers of the response to the caller. */
export function redactRateLimit(redaction: Redactor, info: RateLimitInfo | undefined): RateLimitInfo | undefined {
  if (info === undefined) return undefined
  const text = (value: string | undefined) =>
    value === undefined || NUMBER.test(value) ? value : redaction.redactText(value)
  return { limit: text(info.limit), remaining: text(info.remaining), reset: text(info.reset) }
}

/**
 * A Failure with its texts redacted, also those for the log, and with the last request of its call as `upstream_request` in the
 * metadata; any other error unchanged.
 */
export function redactFailure(
  { redaction, requestLine }: { readonly redaction: Redactor; readonly requestLine: RequestLine },
  error: unknown,
): unknown {
  if (!(error instanceof Failure)) return error
  const request = requestLine.masked(redaction)
  const {
    reason,
    publicMessage,
    metadata,
    violations,
    resource,
    retryAfterSeconds,
    httpStatus,
    raw,
    isPermanent,
    cause,
  } = error
  const redacted = new Failure(reason, redaction.redactText(publicMessage), {
    metadata: {
      ...redaction.redactMap(metadata),
      ...(request === undefined ? {} : { upstream_request: request }),
      ...(requestLine.logId === undefined ? {} : { log_id: requestLine.logId }),
    },
    violations: violations.map((violation) => ({
      ...violation,
      description: redaction.redactText(violation.description),
    })),
    httpStatus,
    isPermanent,
    raw: raw === undefined ? undefined : redaction.redactJson(raw),
    ...(resource === undefined ? {} : { resource }),
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    ...(cause === undefined ? {} : { cause: redaction.redactError(cause) }),
  })
  redacted.stack = redaction.redactText(error.stack ?? '')
  return redacted
}

/** Every text and number in a credential, and what is named like a secret in the JSON that a text may hold. */
function textsIn(value: Json): string[] {
  if (Array.isArray(value) || isJsonObject(value)) return Object.values(value).flatMap((item: Json) => textsIn(item))
  if (isJsonNumber(value)) return [String(value)]
  return typeof value === 'string' ? [value, ...tokenTexts(parsedDocument(value), NONE)] : []
}

const NONE: ReadonlySet<string> = new Set()

/** The texts and numbers below names that say secret or are given. @param sent names of fields that are secrets */
function tokenTexts(value: Json, sent: ReadonlySet<string>): string[] {
  if (Array.isArray(value)) return value.flatMap((item: Json) => tokenTexts(item, sent))
  if (!isJsonObject(value)) return []
  return Object.entries(value).flatMap(([name, item]) => {
    // `token` is the response as a whole in `{oauth: {token}}`.
    const isContainer = name === 'token' && isJsonObject(item)
    const isSecret = !isContainer && !PUBLIC_TOKEN_FIELD.test(name) && (sent.has(name) || isSecretName(name))
    return isSecret ? textsIn(item) : tokenTexts(item, sent)
  })
}

/** JSON within a text, such as the key of a service account; `null` for any other text. */
function parsedDocument(text: string): Json {
  if (!/^\s*[[{]/.test(text)) return null
  try {
    return parseJson(text)
  } catch {
    return null
  }
}
