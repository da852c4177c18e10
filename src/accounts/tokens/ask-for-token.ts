import { Failure, type FailureReason, newId } from '../../base/index.ts'
import type { MethodPlan } from '../../definition/index.ts'
import type { HttpClient } from '../../egress/index.ts'
import type { Scope } from '../../expression/index.ts'
import type { TokenAnswer, TokenRules, TokenTools } from '../../formats/index.ts'
import { type AccountAccess, type ExpressionEvaluator, redactionOf, sendOnce, tokensIn } from '../../proxy/index.ts'
import { isRenewedByAction, type ReadyAccount } from '../ready-account.ts'
import { askByAction, type ByActionDeps } from './ask-by-action.ts'

/** What asking a token endpoint needs. */
export interface AskDeps extends ByActionDeps {
  readonly http: Pick<HttpClient, 'send'>
  readonly evaluator: ExpressionEvaluator
}

/** One request, and all requests of one token together. */
const REQUEST_MS = 10_000
export const ASK_MS_MAX = 25_000
const ANSWER_BYTES_MAX = 256 * 1024

/** Failures that say nothing about account or integration: another attempt may not meet them. */
const PASSING: ReadonlySet<FailureReason> = new Set([
  'UPSTREAM_UNREACHABLE',
  'UPSTREAM_INVALID_RESPONSE',
  'DEADLINE_EXCEEDED',
  'RATE_LIMITED',
  'CANCELLED',
  'SHUTTING_DOWN',
  'INTERNAL',
])

/**
 * Asks for a token as the definition says: for the next one by its action `refresh_token`, where it has one. Whatever goes
 * wrong is an answer; its message holds nothing that was sent.
 *
 * @param ready with the token that is to be replaced, if there is one
 */
export async function askForToken(
  deps: AskDeps,
  rules: TokenRules<MethodPlan>,
  ready: ReadyAccount,
): Promise<TokenAnswer> {
  const { access, token: previous } = ready
  const scope: Scope = { account: access, call: {} }
  const sent: Scope[] = [scope]
  const answer = await answerOrRefusal(() =>
    isRenewedByAction(ready)
      ? askByAction(deps, ready, AbortSignal.timeout(ASK_MS_MAX))
      : rules.obtain(toolsOf(deps, access, sent), scope, previous),
  )
  if (answer.kind === 'granted') return answer
  const redaction = redactionOf(ready.plan, access)
  // What was computed for the requests, such as an assertion, and the answers to earlier ones.
  redaction.learn('requests', () => sent.flatMap(({ call }) => tokensIn(call.args ?? null)))
  return { ...answer, message: redaction.text(answer.message) }
}

async function answerOrRefusal(ask: () => Promise<TokenAnswer>): Promise<TokenAnswer> {
  try {
    return await ask()
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    const kind = PASSING.has(error.reason) ? 'transient' : 'client_refused'
    return { kind, message: error.publicMessage, retryAfterSeconds: error.retryAfterSeconds }
  }
}

function toolsOf({ http, evaluator, clock }: AskDeps, access: AccountAccess, sent: Scope[]): TokenTools<MethodPlan> {
  const deadlineMs = clock.monotonicMs() + ASK_MS_MAX
  const limits = access.environmentId === undefined ? {} : { owner: access.environmentId }
  return {
    async send(request, scope) {
      sent.push(scope)
      const leftMs = deadlineMs - clock.monotonicMs()
      if (leftMs <= 0) throw new Failure('DEADLINE_EXCEEDED', 'the requests for a token took too long together')
      const bounds = { timeoutMs: Math.min(REQUEST_MS, leftMs), responseBytesMax: ANSWER_BYTES_MAX }
      return await sendOnce(http, request, scope, bounds)
    },
    evaluate: (expression, input) => evaluator.evaluate(expression, input, limits),
    now: () => clock.now(),
    nonce: newId,
  }
}
