import type { MethodPlan } from '../definition/index.ts'
import { type AttemptResult, type ClassifiedResponse, withoutRetryHint } from './answer.ts'
import type { DecodedResponse } from './decode.ts'
import type { CallDependencies } from './dependencies.ts'
import { detectRateLimit, rateLimitedOutcome, readRateLimit } from './rate-limit.ts'
import { redactOutcome, redactRateLimit } from './redaction.ts'
import { retryAfterHeaderSeconds } from './retry.ts'
import { classifyError } from './upstream-error.ts'

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
