/** Why an attempt at some work failed. */
export type WorkError = {
  /** A stable name, such as `lease_expired`. */
  readonly reason: string
  /** In words, secrets removed. */
  readonly message: string
}

/** How work that was not interrupted ends. */
export type CompletedStatus = 'completed' | 'partially_completed'

/** How the execution of a claimed item ended. */
export type WorkOutcome<Reason extends WorkError = WorkError> =
  | { readonly kind: CompletedStatus }
  | { readonly kind: 'failed'; readonly error: Reason }
  /**
   * This attempt failed; the next is due after a growing delay, at least `afterMs`. The last attempt fails the item, unless it is one
   * that does not count: then the next is due after `afterMs`.
   */
  | { readonly kind: 'retry'; readonly error: Reason; readonly afterMs?: number; readonly isUncounted?: true }
  /** Waits without counting the attempt; `error` says why, if that is not the upstream's rate limit. */
  | { readonly kind: 'rate_limited'; readonly afterMs: number; readonly error?: Reason }
  /** Ended because its holder was asked to stop. */
  | { readonly kind: 'stopped' }

/** How an item ends: decided and stored before it is reported to the destination, so that another holder reports the same. */
export type DecidedEnding<Reason extends WorkError = WorkError> = {
  /** The attempt that came to it. */
  readonly attempt: number
  /** RFC 3339. */
  readonly decidedAt: string
} & ({ readonly status: CompletedStatus; readonly error: null } | { readonly status: 'failed'; readonly error: Reason })

/** How a holder's work on an item ended: like its execution, or `released` to another holder immediately, without counting the attempt. */
export type Outcome = WorkOutcome | { readonly kind: 'released' }
