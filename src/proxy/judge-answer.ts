import type { MethodPlan } from '../definition/index.ts'
import { type Answer, type Attempt, final } from './answer.ts'
import type { DecodedResponse } from './decode.ts'
import type { CallDependencies } from './dependencies.ts'
import { findRateLimit, rateLimited, readRateLimit } from './rate-limit.ts'
import { redactOutcome, redactRateLimit } from './redaction.ts'
import { retryAfterOf } from './retry.ts'
import { judge } from './upstream-error.ts'

/**
 * The stages behind decoding: rate limit, end of the list, error. What a third party says when it refuses may repeat what it
 * was sent: it leaves here without secrets, and so enters no message, no row, no event and no log.
 *
 * @param url what was requested, without authorization parameters
 * @throws Failure EXPRESSION_FAILED
 */
export async function judgeAnswer(
  deps: Pick<CallDependencies, 'evaluator' | 'clock' | 'redaction'>,
  method: MethodPlan,
  response: DecodedResponse,
  url: string,
): Promise<Attempt<Answer>> {
  const rateLimit = redactRateLimit(deps.redaction, await readRateLimit(deps, method.rateLimit, response))
  const limited = await findRateLimit(deps, method.rateLimit, response, rateLimit)
  if (limited !== undefined) return final(redactOutcome(deps.redaction, limited))
  if (response.status === method.pagination?.paginator.endStatus)
    return final({ kind: 'success', response, rateLimit, url, isPastEnd: true })
  const judged = await judge(deps.evaluator, method, response, rateLimit)
  switch (judged.kind) {
    case 'success':
      return final({ kind: 'success', response: judged.response, rateLimit, url, isPastEnd: false })
    case 'rate_limited':
      return final(
        redactOutcome(
          deps.redaction,
          await rateLimited(deps, method.rateLimit, response, rateLimit, judged.retryAfterSeconds),
        ),
      )
    case 'error':
      return {
        answer: redactOutcome(deps.redaction, judged.outcome),
        retryAfterSeconds: judged.retryAfterSeconds ?? retryAfterOf(deps.clock, response),
      }
  }
}
