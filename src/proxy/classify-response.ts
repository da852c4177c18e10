import { getAtPath, isJsonObject, type Json, type JsonObject, parseDotPath, toDouble } from '../base/index.ts'
import type { MethodPlan } from '../definitions/index.ts'
import { isTransientStatus } from '../egress/index.ts'
import { isTruthy } from '../formats/index.ts'
import type { DecodedResponse } from './decode-response.ts'
import type { CallDependencies, ExpressionEvaluator } from './dependencies.ts'
import {
  type AttemptResult,
  type ClassifiedResponse,
  type ErrorAction,
  type RateLimitInfo,
  type UpstreamErrorOutcome,
  withoutRetryHint,
} from './outcome.ts'
import { detectRateLimit, rateLimitedOutcome, readRateLimit } from './rate-limit-headers.ts'
import { redactOutcome, redactRateLimit } from './redaction.ts'
import { retryAfterHeaderSeconds } from './retry.ts'
import { evaluateSetting, responseInput } from './setting-expression.ts'

/**
 * The stages behind decoding: rate limit, end of the list, error. What a third party says when it refuses may repeat what it
 * was sent: it leaves here without secrets, and so enters no message, no row, no event and no log.
 *
 * @param url what was requested, without authorization parameters
 * @throws Failure EXPRESSION_FAILED
 */
export async function classifyResponse(
  deps: Pick<CallDependencies, 'evaluator' | 'clock' | 'redaction'>,
  method: MethodPlan,
  response: DecodedResponse,
  url: string,
): Promise<AttemptResult<ClassifiedResponse>> {
  const rateLimit = redactRateLimit(deps.redaction, await readRateLimit(deps, method.rateLimit, response))
  const limited = await detectRateLimit(deps, method.rateLimit, response, rateLimit)
  if (limited !== undefined) return withoutRetryHint(redactOutcome(deps.redaction, limited))
  if (response.status === method.pagination?.paginator.endStatus)
    return withoutRetryHint({ kind: 'success', response, rateLimit, url, isPastEnd: true })
  const judged = await classifyError(deps.evaluator, method, response, rateLimit)
  switch (judged.kind) {
    case 'success':
      return withoutRetryHint({ kind: 'success', response: judged.response, rateLimit, url, isPastEnd: false })
    case 'rate_limited':
      return withoutRetryHint(
        redactOutcome(
          deps.redaction,
          await rateLimitedOutcome(deps, method.rateLimit, response, rateLimit, judged.retryAfterSeconds),
        ),
      )
    case 'error':
      return {
        outcome: redactOutcome(deps.redaction, judged.outcome),
        retryAfterSeconds: judged.retryAfterSeconds ?? retryAfterHeaderSeconds(deps.clock, response),
      }
  }
}

/** What stage 8 decided. */
type ErrorClassification =
  | { readonly kind: 'success'; readonly response: DecodedResponse }
  | { readonly kind: 'error'; readonly outcome: UpstreamErrorOutcome; readonly retryAfterSeconds: number | undefined }
  | { readonly kind: 'rate_limited'; readonly retryAfterSeconds: number | undefined }

const MESSAGE_LENGTH_MAX = 500
/** A rate limit has an outcome of its own; 501 and 505 (not implemented, HTTP version not supported) are permanent. */
const NOT_RETRIED: ReadonlySet<number> = new Set([429, 501, 505])
const ACTIONS: ReadonlySet<string> = new Set<ErrorAction>([
  'fail',
  'retry',
  'refresh_token',
  'needs_reauth',
  'ignore',
  'stop',
])

/** Where APIs put the sentence about what went wrong; the first text found is taken. */
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
 * Stage 8: tells success from error.
 *
 * The error expression is asked about every response. Nothing from it (no value, null, false, 0, an empty text or list) means
 * that the status decides; an object with a status below 400 makes a success of it, with `result` as the body; any other
 * object is the error. A text is an error with that message, and whatever else is truthy an error without one.
 *
 * @throws Failure EXPRESSION_FAILED
 */
async function classifyError(
  evaluator: ExpressionEvaluator,
  { errorExpression }: Pick<MethodPlan, 'errorExpression'>,
  response: DecodedResponse,
  rateLimit: RateLimitInfo | undefined,
): Promise<ErrorClassification> {
  const said =
    errorExpression === undefined
      ? undefined
      : await evaluateSetting(evaluator, 'error_expression', errorExpression, responseInput(response))
  if (!isJsonObject(said) && !isTruthy(said))
    return response.status < 400 ? { kind: 'success', response } : toErrorClassification(response, {}, rateLimit)
  return classifyNormalized(response, isJsonObject(said) ? said : { message: said ?? null }, rateLimit)
}

function classifyNormalized(
  response: DecodedResponse,
  said: JsonObject,
  rateLimit: RateLimitInfo | undefined,
): ErrorClassification {
  const status = errorStatus(said.status, response.status)
  if (status < 400 && said.action === undefined)
    return { kind: 'success', response: normalizedResponse(response, said, status) }
  return toErrorClassification({ ...response, status }, said, rateLimit)
}

function normalizedResponse(response: DecodedResponse, said: JsonObject, status: number): DecodedResponse {
  const body = Object.hasOwn(said, 'result') ? (said.result ?? null) : response.body
  return { status, headers: { ...response.headers, ...lowerCaseHeaders(said.headers) }, body }
}

function toErrorClassification(
  response: DecodedResponse,
  said: JsonObject,
  rateLimit: RateLimitInfo | undefined,
): ErrorClassification {
  const retryAfter = toDouble(said.retry_after)
  const retryAfterSeconds = typeof retryAfter === 'number' ? Math.max(0, retryAfter) : undefined
  if (said.action === 'rate_limited' || (said.action === undefined && Number(said.status) === 429))
    return { kind: 'rate_limited', retryAfterSeconds }
  const outcome: UpstreamErrorOutcome = {
    kind: 'upstream_error',
    status: response.status,
    message: typeof said.message === 'string' ? truncateMessage(said.message) : errorMessage(response),
    metadata: isJsonObject(said.metadata) ? said.metadata : {},
    headers: { ...response.headers, ...lowerCaseHeaders(said.headers) },
    ownHeaders: lowerCaseHeaders(said.headers),
    body: response.body,
    result: said.result,
    rateLimit,
    action: errorAction(said.action, response.status),
  }
  return { kind: 'error', outcome, retryAfterSeconds }
}

function errorAction(said: Json | undefined, status: number): ErrorAction {
  if (typeof said === 'string' && ACTIONS.has(said)) return said as ErrorAction
  if (status === 401) return 'refresh_token'
  return isRetryableStatus(status) ? 'retry' : 'fail'
}

/** Whether a call is retried by its status: the default where the definition names no action. */
export function isRetryableStatus(status: number): boolean {
  return isTransientStatus(status) && !NOT_RETRIED.has(status)
}

/** An error that names no status is one all the same: of a success it becomes 502, because the upstream failed. */
function errorStatus(said: Json | undefined, status: number): number {
  const number = typeof said === 'string' ? Number(said) : toDouble(said)
  if (typeof number === 'number' && Number.isInteger(number) && number >= 100 && number <= 599) return number
  return status < 400 ? 502 : status
}

function errorMessage({ status, body }: DecodedResponse): string {
  const found = MESSAGE_PATHS.map((path) => getAtPath(body, path)).find(
    (text) => typeof text === 'string' && text.trim() !== '',
  )
  return typeof found === 'string' ? truncateMessage(found) : `the upstream answered ${status}`
}

function truncateMessage(text: string): string {
  return text.length > MESSAGE_LENGTH_MAX ? `${text.slice(0, MESSAGE_LENGTH_MAX - 1)}…` : text
}

function lowerCaseHeaders(value: Json | undefined): Record<string, string> {
  if (!isJsonObject(value)) return {}
  return Object.fromEntries(Object.entries(value).map(([name, text]) => [name.toLowerCase(), String(text)]))
}
