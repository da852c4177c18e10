import type { JsonObject } from '../../base/index.ts'
import type { DecidedEnding, ResourceStats, RunError } from '../../storage/index.ts'
import type { CompletedStatus } from './incremental.ts'

/** How the execution of a claimed run ended. */
export type RunOutcome =
  | { readonly kind: CompletedStatus }
  | { readonly kind: 'failed'; readonly error: RunError }
  /** Goes back to the queue after a growing delay, at least `afterMs`; the last attempt fails the run instead. */
  | { readonly kind: 'retry'; readonly error: RunError; readonly afterMs?: number }
  /** Waits without counting an attempt; `error` says for whom, if it is not the third party. */
  | { readonly kind: 'rate_limited'; readonly afterMs: number; readonly error?: RunError }
  /** Ended where `save` said so. */
  | { readonly kind: 'stopped' }

/** How an execution reports what it has done. */
export interface RunProgress {
  /**
   * Stores the checkpoint and the counters and renews the lease, in one statement.
   *
   * @param ending how the run ends, before its destination is told; absent while that is not decided
   * @returns `stop` when the run should end here: it was asked to, or its worker drains
   * @throws Failure LEASE_LOST when another holder took over: nothing was stored, the execution must end
   */
  save(checkpoint: JsonObject, stats: readonly ResourceStats[], ending?: DecidedEnding): Promise<'continue' | 'stop'>
}
