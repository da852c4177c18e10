import type { Clock, JsonObject } from '../base/index.ts'
import type { MethodPlan, Plan } from '../definitions/index.ts'
import type { HttpClient } from '../egress/index.ts'
import type { Evaluator } from '../expressions/index.ts'
import type { Redactor } from '../redaction/index.ts'
import type { RateLimitInfo } from './outcome.ts'
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

/** Whoever keeps accounts authorised. Without one, 401 and 403 are outcomes of a call and nothing more. */
export interface CredentialRefresher {
  /**
   * Newer credentials than those that were refused; `undefined` when there are none to be had. Asked at most once per
   * request.
   *
   * @throws Failure TOKEN_REQUEST_FAILED while the token endpoint cannot be asked
   */
  refresh(access: AccountAccess, signal?: AbortSignal): Promise<AccountAccess | undefined>
  /** What the final answer of a call says about the account. Never rejects. */
  report(access: AccountAccess, sign: AccountSignal): Promise<void>
  /** Merges what `update_context` steps of an action computed into the context of the account. */
  updateContext(access: AccountAccess, patch: JsonObject): Promise<void>
}

/**
 * `unauthorized`: refused, also with renewed credentials, or the definition says `needs_reauth`. `forbidden`: the credentials
 * are good, but not for this. `worked`: told only of an account that was said to need to be connected again.
 */
export type AccountSignal =
  | { readonly kind: 'unauthorized'; readonly message: string }
  | { readonly kind: 'forbidden'; readonly resource: string; readonly method: string }
  | { readonly kind: 'worked' }

/** Shared limits in front of sending: the definition's `budget` and `concurrency`. Without them nothing is held back. */
export interface CallLimiter {
  /** Takes one request from every budget that applies. */
  acquire(method: MethodPlan, access: AccountAccess, signal?: AbortSignal): Promise<CallPermit>
  /** Tells what an answer said about the upstream's own limits; costs the call no time. */
  observe(method: MethodPlan, access: AccountAccess, answer: RateLimitHints): void
}

/** What an answer tells about limits. */
interface RateLimitHints {
  readonly rateLimit: RateLimitInfo | undefined
  /** The upstream asked to wait. */
  readonly retryAfterSeconds?: number
}

/** `release` is called once, when the answer is there or will not come; it never rejects. */
export type CallPermit =
  | { readonly kind: 'granted'; release(): Promise<void> }
  | { readonly kind: 'limited'; readonly retryAfterSeconds: number }
