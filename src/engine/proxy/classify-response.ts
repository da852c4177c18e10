import { answeredAt, isTransientStatus, parseRetryAfter, retryAfterSeconds } from '../../foundation/egress/index.ts'
import {
  getAtPath,
  isJsonObject,
  type Json,
  type JsonObject,
  parseDotPath,
  toDouble,
} from '../../foundation/json/index.ts'
import type { MethodPlan } from '../definitions/plan.ts'
import { isTruthy } from '../formats/format.ts'
import { findMissingEvidence, type MissingEvidence } from './check-evidence.ts'
import type { DecodedResponse } from './decode-response.ts'
import type { CallDependencies } from './dependencies.ts'
import type { AttemptResult, ClassifiedResponse, ErrorAction, RateLimitInfo, UpstreamErrorOutcome } from './outcome.ts'
import { detectRateLimit, rateLimitedOutcome, readRateLimit } from './rate-limit-headers.ts'
import { redactOutcome, redactRateLimit } from './redaction.ts'
import { type ExpressionDependencies, evaluateSetting, responseInput } from './setting-expression.ts'

/**
 * Classifies a decoded response: rate limit, end of the list, error or success. An error response may quote the credentials it
 * was sent: it is redacted here, before it reaches a message, a row, an event or a log.
 *
 * An error expression that finds nothing means that there is no error, whatever the status. For a status of 400 or more that
 * counts where a caller asked for this very answer (`/proxy`, `/custom`, the RPC `Call`): it gets status and body as they are
 * (`isPassedOn`). What this service does with an answer goes by the status, since a silent expression knows nothing of it: retries,
 * the refresh of credentials, the status of the account; and everything that reads from the body takes it for an error: pages of
 * lists, steps of actions, verifications and identities, subscriptions, options of forms, tools, unified calls. For them only a
 * result with a status below 400 makes a success of it.
 *
 * What is no error must be positive evidence of what was asked for, or it is an error after all: `findMissingEvidence`.
 *
 * @param url URL of the request, without authorization parameters
 * @param hasBody whether the response had a body
 * @throws Failure EXPRESSION_FAILED, UPSTREAM_INVALID_RESPONSE
 */
export async function classifyResponse(
  deps: ErrorDependencies & Pick<CallDependencies, 'redaction' | 'requestLine'>,
  method: MethodPlan,
  response: DecodedResponse,
  url: string,
  hasBody: boolean,
): Promise<AttemptResult<ClassifiedResponse>> {
  const rateLimit = redactRateLimit(deps.redaction, await readRateLimit(deps, method.rateLimit, response))
  const limited = await detectRateLimit(deps, method.rateLimit, response, rateLimit)
  if (limited !== undefined) return { outcome: redactOutcome(deps.redaction, limited) }
  if (response.status === method.pagination?.paginator.endStatus)
    return { outcome: { kind: 'success', response, rateLimit, url, isPastEnd: true } }
  const classified = await classifyError(deps, method, response, rateLimit, (answer) =>
    findMissingEvidence(method, answer, hasBody, url),
  )
  switch (classified.kind) {
    case 'success':
      return { outcome: { kind: 'success', response: classified.response, rateLimit, url, isPastEnd: false } }
    case 'rate_limited': {
      const { retryAfterSeconds } = classified
      const outcome = await rateLimitedOutcome(deps, method.rateLimit, response, rateLimit, retryAfterSeconds)
      return { outcome: redactOutcome(deps.redaction, outcome) }
    }
    case 'error': {
      const seconds = classified.retryAfterSeconds ?? retryAfterSeconds(response.headers, deps.clock.now())
      return {
        outcome: {
          ...redactOutcome(deps.redaction, classified.outcome),
          ...(seconds === undefined ? {} : { retryHintSeconds: seconds }),
          request: deps.requestLine.masked(deps.redaction),
          ...logIdOf(deps),
        },
        retryAfterSeconds: seconds,
      }
    }
  }
}

type ErrorDependencies = ExpressionDependencies & Pick<CallDependencies, 'clock'>

/** The entry of the last request, where requests are logged. */
export function logIdOf({ requestLine: { logId } }: Pick<CallDependencies, 'requestLine'>): {
  readonly logId?: string
} {
  return logId === undefined ? {} : { logId }
}

/** The result of the error expression and the status. */
type ErrorClassification =
  | { readonly kind: 'success'; readonly response: DecodedResponse }
  | { readonly kind: 'error'; readonly outcome: UpstreamErrorOutcome; readonly retryAfterSeconds: number | undefined }
  | { readonly kind: 'rate_limited'; readonly retryAfterSeconds: number | undefined }

/** A rate limit has an outcome of its own; 501 and 505 are permanent: the server knows neither method nor version. */
const NOT_RETRIED: ReadonlySet<number> = new Set([429, 501, 505])
const ACTIONS: ReadonlySet<string> = new Set<ErrorAction>([
  'fail',
  'retry',
  'refresh_token',
  'needs_reauth',
  'ignore',
  'stop',
  'restart',
])

/** Fields where APIs put the error message; the first text is used. */
const MESSAGE_PATHS = [
  'error.message',
  'error_description',
  'message',
  'error.description',
  'errors[0].message',
  'errors[0].detail',
  'errors[0]',
  'detail',
  'title',
  'error',
].map(parseDotPath)

/**
 * Tells success from error. The error expression is evaluated for every response. Its result: nothing (no value, null, false,
 * 0, an empty text or list) says that there is no error, as `classifyResponse` explains; an object with a status below 400 makes it a success, with `result` as the
 * body; any other object is the error; a text is an error with that message; any other truthy value is an error without one.
 *
 * @throws Failure EXPRESSION_FAILED
 */
async function classifyError(
  deps: ErrorDependencies,
  { errorExpression }: Pick<MethodPlan, 'errorExpression'>,
  response: DecodedResponse,
  rateLimit: RateLimitInfo | undefined,
  findMissing: (response: DecodedResponse) => MissingEvidence | undefined,
): Promise<ErrorClassification> {
  const computed =
    errorExpression === undefined
      ? undefined
      : await evaluateSetting(deps, 'error_expression', errorExpression, responseInput(response))
  const { clock } = deps
  if (!isJsonObject(computed) && !isTruthy(computed)) {
    const missing = response.status < 400 ? findMissing(response) : undefined
    if (missing !== undefined) return toErrorClassification(clock, response, { ...missing }, rateLimit)
    if (response.status < 400) return { kind: 'success', response }
    return toErrorClassification(clock, response, {}, rateLimit, errorExpression !== undefined)
  }
  return classifyNormalized(
    clock,
    response,
    isJsonObject(computed) ? computed : { message: computed ?? null },
    rateLimit,
  )
}

function classifyNormalized(
  clock: CallDependencies['clock'],
  response: DecodedResponse,
  computed: JsonObject,
  rateLimit: RateLimitInfo | undefined,
): ErrorClassification {
  const status = errorStatus(computed.status, response.status)
  if (status < 400 && computed.action === undefined)
    return { kind: 'success', response: normalizedResponse(response, computed, status) }
  return toErrorClassification(clock, { ...response, status }, computed, rateLimit)
}

function normalizedResponse(response: DecodedResponse, computed: JsonObject, status: number): DecodedResponse {
  const body = Object.hasOwn(computed, 'result') ? (computed.result ?? null) : response.body
  return { status, headers: { ...response.headers, ...lowerCaseHeaders(computed.headers) }, body }
}

function toErrorClassification(
  clock: CallDependencies['clock'],
  response: DecodedResponse,
  computed: JsonObject,
  rateLimit: RateLimitInfo | undefined,
  isPassedOn = false,
): ErrorClassification {
  const retryAfterSeconds = parseRetryAfter(computed.retry_after, answeredAt(response.headers, clock.now()))
  if (computed.action === 'rate_limited' || (computed.action === undefined && Number(computed.status) === 429))
    return { kind: 'rate_limited', retryAfterSeconds }
  const outcome: UpstreamErrorOutcome = {
    kind: 'upstream_error',
    status: response.status,
    message: typeof computed.message === 'string' ? computed.message : errorMessage(response),
    metadata: isJsonObject(computed.metadata) ? computed.metadata : {},
    headers: { ...response.headers, ...lowerCaseHeaders(computed.headers) },
    ownHeaders: lowerCaseHeaders(computed.headers),
    body: response.body,
    result: computed.result,
    rateLimit,
    action: errorAction(computed.action, response.status),
    isPassedOn,
  }
  return { kind: 'error', outcome, retryAfterSeconds }
}

function errorAction(computed: Json | undefined, status: number): ErrorAction {
  if (typeof computed === 'string' && ACTIONS.has(computed)) return computed as ErrorAction
  if (status === 401) return 'refresh_token'
  return isRetryableStatus(status) ? 'retry' : 'fail'
}

/** Whether a call is retried by its status: the default where the definition names no action. */
export function isRetryableStatus(status: number): boolean {
  return isTransientStatus(status) && !NOT_RETRIED.has(status)
}

/** The status of an error; 502 when the error expression names none for a response with a success status. */
function errorStatus(computed: Json | undefined, status: number): number {
  const number = typeof computed === 'string' ? Number(computed) : toDouble(computed)
  if (typeof number === 'number' && Number.isInteger(number) && number >= 100 && number <= 599) return number
  return status < 400 ? 502 : status
}

function errorMessage({ status, body }: DecodedResponse): string {
  const found = MESSAGE_PATHS.map((path) => getAtPath(body, path)).find(
    (text) => typeof text === 'string' && text.trim() !== '',
  )
  return typeof found === 'string' ? found : `the upstream answered ${status}`
}

function lowerCaseHeaders(value: Json | undefined): Record<string, string> {
  if (!isJsonObject(value)) return {}
  return Object.fromEntries(Object.entries(value).map(([name, text]) => [name.toLowerCase(), String(text)]))
}
