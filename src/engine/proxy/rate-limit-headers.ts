import { answeredAt, parseRetryAfter } from '../../foundation/egress/index.ts'
import { isJsonNumber, isJsonObject, type Json } from '../../foundation/json/index.ts'
import type { RateLimitRules } from '../definitions/plan.ts'
import { isTruthy } from '../formats/format.ts'
import type { DecodedResponse } from './decode-response.ts'
import type { CallDependencies } from './dependencies.ts'
import type { RateLimitedOutcome, RateLimitInfo } from './outcome.ts'
import { type ExpressionDependencies, evaluateSetting, responseInput } from './setting-expression.ts'

type RateLimitDependencies = ExpressionDependencies & Pick<CallDependencies, 'clock'>

const TOO_MANY_REQUESTS = 429
/** Wait of a rate limit without a hint how long. */
const RETRY_AFTER_DEFAULT_SECONDS = 60

/** The rate limit of a response, if it is one. @throws Failure EXPRESSION_FAILED */
export async function detectRateLimit(
  deps: RateLimitDependencies,
  rules: RateLimitRules,
  response: DecodedResponse,
  rateLimit: RateLimitInfo | undefined,
): Promise<RateLimitedOutcome | undefined> {
  const isLimited =
    rules.isRateLimited === undefined
      ? response.status === TOO_MANY_REQUESTS
      : isTruthy(
          await evaluateSetting(deps, 'rate_limit.is_rate_limited', rules.isRateLimited, responseInput(response)),
        )
  return isLimited ? rateLimitedOutcome(deps, rules, response, rateLimit) : undefined
}

/** The outcome of a rate limit response. @param hint wait in seconds from the error expression */
export async function rateLimitedOutcome(
  deps: RateLimitDependencies,
  rules: RateLimitRules,
  response: DecodedResponse,
  rateLimit: RateLimitInfo | undefined,
  hint?: number,
): Promise<RateLimitedOutcome> {
  const { status, body } = response
  const retryAfterSeconds = hint ?? (await readRetryAfter(deps, rules, response)) ?? RETRY_AFTER_DEFAULT_SECONDS
  return { kind: 'rate_limited', limitedBy: 'upstream', status, retryAfterSeconds, rateLimit, body }
}

async function readRetryAfter(
  deps: RateLimitDependencies,
  rules: RateLimitRules,
  response: DecodedResponse,
): Promise<number | undefined> {
  const now = answeredAt(response.headers, deps.clock.now())
  const computed =
    rules.retryAfter === undefined
      ? undefined
      : await evaluateSetting(
          deps,
          'rate_limit.retry_after_header_expression',
          rules.retryAfter,
          responseInput(response),
        )
  return parseRetryAfter(computed, now) ?? parseRetryAfter(response.headers['retry-after'], now)
}

/**
 * The state of the upstream's limit: the result of the expression, else the standard `RateLimit-*` headers.
 */
export async function readRateLimit(
  deps: ExpressionDependencies,
  rules: RateLimitRules,
  response: DecodedResponse,
): Promise<RateLimitInfo | undefined> {
  if (rules.rateLimit === undefined) return standardHeaders(response.headers)
  const computed = await evaluateSetting(
    deps,
    'rate_limit.rate_limit_header_expression',
    rules.rateLimit,
    responseInput(response),
  )
  return isJsonObject(computed) ? rateLimitInfo(computed.limit, computed.remaining, computed.reset) : undefined
}

function standardHeaders(headers: DecodedResponse['headers']): RateLimitInfo | undefined {
  return rateLimitInfo(headers['ratelimit-limit'], headers['ratelimit-remaining'], headers['ratelimit-reset'])
}

function rateLimitInfo(
  limit: Json | undefined,
  remaining: Json | undefined,
  reset: Json | undefined,
): RateLimitInfo | undefined {
  const info = { limit: headerText(limit), remaining: headerText(remaining), reset: headerText(reset) }
  return Object.values(info).some((value) => value !== undefined) ? info : undefined
}

function headerText(value: Json | undefined): string | undefined {
  return typeof value === 'string' || isJsonNumber(value) ? String(value) : undefined
}
