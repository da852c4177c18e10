import type { Clock } from '../base/index.ts'
import type { Plan } from '../definition/index.ts'
import type { HttpClient } from '../egress/index.ts'
import type { Evaluator } from '../expression/index.ts'
import type { Redactor } from '../vault/index.ts'
import type { CredentialRefresher } from './account-keeper.ts'
import type { CallLimiter } from './budgets.ts'
import { createRedaction } from './redaction.ts'
import type { AccountAccess } from './request.ts'

/** What the engine is built from. It knows no database: accounts and plans are handed to each call. */
export interface ProxyDependencies {
  readonly http: Pick<HttpClient, 'send' | 'stream'>
  readonly evaluator: ExpressionEvaluator
  readonly clock: Clock
  /** A number in [0, 1), for the jitter of retries. Default: `Math.random`. */
  readonly random?: () => number
  /** A fresh unpredictable hexadecimal text. Default: 16 random bytes. */
  readonly nonce?: () => string
  readonly keeper?: CredentialRefresher | undefined
  readonly budgets?: CallLimiter | undefined
}

/** The part of the sandbox that calls use. @throws Failure EXPRESSION_FAILED, EXPRESSION_QUARANTINED */
export type ExpressionEvaluator = Pick<Evaluator, 'evaluate'>

/** Of the roots and of the result: a whole page of a list goes through `response_path`. */
const EXPRESSION_BYTES_MAX = 5 * 1024 * 1024

/** What the stages of one call are built from. */
export interface CallDependencies extends ProxyDependencies {
  /** Knows every secret of the call; each stage adds what it puts on a request. */
  readonly redaction: Redactor
}

/**
 * The dependencies of one call: expressions are evaluated on behalf of its environment, which is served in turn with others,
 * and texts are redacted of its secrets.
 */
export function dependenciesForCall(deps: ProxyDependencies, plan: Plan, account: AccountAccess): CallDependencies {
  const { environmentId } = account
  const limits = {
    inputBytesMax: EXPRESSION_BYTES_MAX,
    resultBytesMax: EXPRESSION_BYTES_MAX,
    ...(environmentId === undefined ? {} : { owner: environmentId }),
  }
  return {
    ...deps,
    redaction: createRedaction(plan, account),
    evaluator: {
      evaluate: (expression, roots, options) => deps.evaluator.evaluate(expression, roots, { ...limits, ...options }),
    },
  }
}
