import type { Clock, Json, JsonObject } from '../base/index.ts'
import type { HttpClient } from '../egress/index.ts'

/** What the engine is built from. It knows no database: accounts and plans are handed to each call. */
export interface ProxyDependencies {
  readonly http: Pick<HttpClient, 'send'>
  readonly evaluator: ExpressionEvaluator
  readonly clock: Clock
  /** A number in [0, 1), for the jitter of retries. Default: `Math.random`. */
  readonly random?: () => number
  /** A fresh unpredictable hexadecimal text. Default: 16 random bytes. */
  readonly nonce?: () => string
}

/** The part of the sandbox that calls use. @throws Failure EXPRESSION_FAILED, EXPRESSION_QUARANTINED */
export interface ExpressionEvaluator {
  evaluate(expression: string, roots: JsonObject): Promise<Json | undefined>
}
