import type { Clock, Failure, Sealer } from '../../foundation/base/index.ts'
import type { HttpClient } from '../../foundation/egress/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import type { Redactor } from '../../foundation/redaction/index.ts'
import type { MethodPlan } from '../definitions/plan.ts'
import type { Evaluator } from '../expressions/evaluator.ts'
import type { CallLog } from './logged-call.ts'
import type { RateLimitInfo } from './outcome.ts'
import type { AccountAccess } from './request.ts'
import type { RequestLine } from './request-line.ts'

/** The ports of the proxy. It knows no database: plan and account are arguments of each call. */
export interface ProxyDependencies {
  readonly http: Pick<HttpClient, 'send' | 'stream'>
  readonly evaluator: ExpressionEvaluator
  readonly clock: Clock
  /** A number in [0, 1), for the jitter of retries. Default: `Math.random`. */
  readonly random?: () => number
  /** A fresh unpredictable hexadecimal text. Default: 16 random bytes. */
  readonly nonce?: () => string
  readonly credentialRefresher?: CredentialRefresher | undefined
  readonly accountReporter?: AccountReporter | undefined
  readonly callLimiter?: CallLimiter | undefined
  readonly callLog?: CallLog | undefined
  /** Seals cursors. Absent: the cursors of this proxy are valid as long as it lives, and in no other one. */
  readonly sealer?: Sealer | undefined
}

/** Evaluates the expressions of a definition. @throws Failure EXPRESSION_FAILED, EXPRESSION_QUARANTINED */
export type ExpressionEvaluator = Pick<Evaluator, 'evaluate'>

/** The dependencies of one call. */
export interface CallDependencies extends ProxyDependencies {
  readonly sealer: Sealer
  /** Redacts every secret of the call; each stage adds the secrets it puts on a request. */
  readonly redaction: Redactor
  /** The secrets of an account's renewed credentials. */
  readonly secretsOf: (access: AccountAccess) => string[]
  /** Of the account; expressions read what `environmentRoots` allows. */
  readonly environmentVariables: JsonObject
  /** Names the last request of the call in its errors. */
  readonly requestLine: RequestLine
  /** The environment, whose work takes turns with that of others. */
  readonly owner: string
  /** See `AnswerMemory`. */
  readonly reserveAnswerBytes: (bytes: number) => Failure | undefined
}

/** Refreshes rejected credentials. Absent: a 401 is the outcome of the call. */
export interface CredentialRefresher {
  /**
   * Newer credentials than the rejected ones; `undefined` when there are none. Called at most once per request.
   *
   * @throws Failure TOKEN_REQUEST_FAILED while the token endpoint is unavailable
   */
  refresh(access: AccountAccess, signal?: AbortSignal): Promise<AccountAccess | undefined>
}

/** Stores what calls reveal or compute about an account. Absent: nothing is stored. */
export interface AccountReporter {
  /** Reports the signal of the final response of a call. Never rejects. */
  report(access: AccountAccess, signal: AccountSignal): Promise<void>
  /**
   * Merges the result of the `update_context` steps of an action into the context of the account.
   *
   * @param isOfDefinition the definition's own action, such as `post_install`; else one that a caller runs, with arguments
   * @param leaseId of the activation that runs it: nothing is stored when that has lost its lease
   */
  updateContext(access: AccountAccess, patch: JsonObject, isOfDefinition: boolean, leaseId?: string): Promise<void>
}

/**
 * What a response says about its account. `unauthorized`: rejected, also with refreshed credentials, or the definition says
 * `needs_reauth`. `forbidden`: the credentials are valid, but not for this method. `worked`: reported only of an account with
 * `unauthorizedSince`.
 */
export type AccountSignal =
  | { readonly kind: 'unauthorized'; readonly message: string }
  | { readonly kind: 'forbidden'; readonly resource: string; readonly method: string }
  | { readonly kind: 'worked' }

/** Rate limits shared by all processes: `budget` and `concurrency` of the definition. Absent: calls are not limited. */
export interface CallLimiter {
  /** Takes one request from every limit that applies. */
  acquire(method: MethodPlan, access: AccountAccess, signal?: AbortSignal): Promise<CallPermit>
  /** Records what a response says about the upstream's own limits. Returns without waiting for the write. */
  observe(method: MethodPlan, access: AccountAccess, hints: RateLimitHints): void
}

/** Rate limit of the upstream, as a response states it. */
interface RateLimitHints {
  readonly rateLimit: RateLimitInfo | undefined
  /** Present when the upstream asks to wait. */
  readonly retryAfterSeconds?: number
}

/** `release` is called once, after the response or its failure; it never rejects. */
export type CallPermit =
  | { readonly kind: 'granted'; release(): Promise<void> }
  | { readonly kind: 'limited'; readonly retryAfterSeconds: number }
