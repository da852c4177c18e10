import { Failure, isJsonNumber, isJsonObject, type Json, type JsonObject, parseJson } from '../base/index.ts'
import { type Plan, secretTexts } from '../definitions/index.ts'
import { type AuthorizationEffect, type ListingState, mapQuery } from '../formats/index.ts'
import { Redactor, SECRET_MASK } from '../redaction/index.ts'
import type { RateLimitedOutcome, RateLimitInfo, UpstreamErrorOutcome } from './outcome.ts'
import type { AccountAccess } from './request.ts'

/** Fields of a token answer that say what kind of token it is, and for how long. */
const PUBLIC_TOKEN_FIELDS: ReadonlySet<string> = new Set(['token_type', 'scope', 'expires_in', 'expires_at'])

/** Texts without blanks that are so long are taken for tokens: signatures, sessions, what a step of an action was given. */
const TOKEN = /^\S{16,}$/
/** Tokens that are looked for in the results of steps; they are guesses, and the first ones do. */
const TOKENS_MAX = 1_000
const LEAVES_MAX = 10_000

/**
 * Knows every secret of a call: the account's credentials and token answer, and what the definition and the environment's
 * variables keep encrypted. What else a call learns on its way (renewed credentials, signatures) it is told.
 */
export function createRedaction(plan: Plan, access: AccountAccess): Redactor {
  return new Redactor(() => [...plan.secrets, ...accountSecrets(access)])
}

/** The secrets that an account contributes to its calls. */
export function accountSecrets({ credentials, environmentVariables }: AccountAccess): string[] {
  return [...credentialTexts(credentials), ...secretTexts({ environment_variables: environmentVariables })]
}

/** What authorization puts on a request: the values, and within them what looks like a token or a signature. */
export function authorizationSecrets({ headers, query }: AuthorizationEffect): string[] {
  return [...Object.values(headers), ...Object.values(query)].flatMap((value) => {
    const words = value.split(/[\s,"]+/)
    return [value, ...words, ...words.map((word) => word.replace(/^[\w-]+=/, ''))].filter((text) => TOKEN.test(text))
  })
}

/** The texts in a value that look like tokens, the first ones of very many. */
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

/** An outcome that is not a success, with the third party's words redacted. */
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
    message: redaction.redactText(outcome.message),
    metadata: isJsonObject(metadata) ? metadata : {},
    headers: redaction.redactMap(outcome.headers),
    ownHeaders: redaction.redactMap(outcome.ownHeaders),
    ...(outcome.result === undefined ? {} : { result: redaction.redactJson(outcome.result) }),
  }
}

/**
 * The state of a listing with a reference in the place of each query parameter of a link whose value is a secret: third
 * parties put the credential they were sent into their next links, and states are stored and given to callers.
 */
export function maskLinkSecrets(redaction: Redactor, state: ListingState): ListingState {
  return { ...state, position: mapLinks(state.position, (value) => redaction.placeholderFor(value) ?? value) }
}

/** The state with its links as they were given. A secret that is no longer known is dropped: authorization puts on the new one. */
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

/** Numbers need no look, which spares most calls that succeed the index of their secrets. */
const NUMBER = /^\d{1,19}$/

/** What is told about a limit, which becomes headers of the answer, also of a success. */
export function redactRateLimit(redaction: Redactor, info: RateLimitInfo | undefined): RateLimitInfo | undefined {
  if (info === undefined) return undefined
  const text = (value: string | undefined) =>
    value === undefined || NUMBER.test(value) ? value : redaction.redactText(value)
  return { limit: text(info.limit), remaining: text(info.remaining), reset: text(info.reset) }
}

/** A Failure with its texts redacted, also those for the log; anything else as it is. */
export function redactFailure(redaction: Redactor, error: unknown): unknown {
  if (!(error instanceof Failure)) return error
  const { reason, publicMessage, metadata, violations, resource, retryAfterSeconds, httpStatus, raw, cause } = error
  const redacted = new Failure(reason, redaction.redactText(publicMessage), {
    metadata: redaction.redactMap(metadata),
    violations: violations.map((violation) => ({
      ...violation,
      description: redaction.redactText(violation.description),
    })),
    httpStatus,
    raw: raw === undefined ? undefined : redaction.redactJson(raw),
    ...(resource === undefined ? {} : { resource }),
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    ...(cause === undefined ? {} : { cause: redaction.redactError(cause) }),
  })
  redacted.stack = redaction.redactText(error.stack ?? '')
  return redacted
}

/**
 * Every text and number below, but for what a token answer says about its token. A text that is JSON counts with its leaves.
 */
function credentialTexts(value: Json, name = ''): string[] {
  if (PUBLIC_TOKEN_FIELDS.has(name)) return []
  if (Array.isArray(value)) return value.flatMap((item: Json) => credentialTexts(item))
  if (isJsonObject(value)) return Object.entries(value).flatMap(([key, item]) => credentialTexts(item, key))
  if (isJsonNumber(value)) return [String(value)]
  return typeof value === 'string' ? [value, ...jsonLeaves(value)] : []
}

function jsonLeaves(text: string): string[] {
  if (!/^\s*[[{]/.test(text)) return []
  try {
    return credentialTexts(parseJson(text))
  } catch {
    return []
  }
}
