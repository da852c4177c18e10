import type { LeaseKey, RunError, TakenLease, Tx, WaitingItem } from '../storage/index.ts'

/**
 * The seam between those who have work and those who do it. Work is at-least-once and fenced: whoever lost a lease can
 * neither renew nor settle it.
 *
 * `Carried` are the values a kind of work takes through the queue beside its id.
 */
export interface Queue<Carried> {
  /** Puts items into the queue in the transaction that creates them; nobody claims them before it commits. */
  enqueue(tx: Tx, items: readonly (WaitingItem & Carried)[]): Promise<void>
  /** Leases up to `limit` items, fairly between flows. */
  claim(request: Claim): Promise<readonly (TakenLease & Carried)[]>
  /** Renews leases; the answer has one entry for every lease asked about. */
  heartbeat(held: readonly LeaseKey[]): Promise<readonly HeartbeatResult[]>
  /** Ends leases; the answer has one entry for every lease asked about, and a lost one changed nothing. */
  settle(settlements: readonly Settlement[]): Promise<readonly Settled[]>
  /** Takes back leases that expired or ignored a request to stop; returns how many. Call until it returns 0. */
  reap(): Promise<number>
}

/** What a claimant asks for. */
export interface Claim {
  readonly group: string
  readonly holder: string
  readonly limit: number
  /** Only items of these regions. Absent: of any. */
  readonly regions?: readonly string[] | undefined
  /** Items of the group that all holders together may hold; two claims at the same moment may exceed it. */
  readonly heldMax?: number
}

/** The answer to a heartbeat: the lease goes on, or it belongs to somebody else and the work must end at once. */
export type HeartbeatResult =
  | { readonly kind: 'held'; readonly id: string; readonly expiresAt: Date; readonly isStopRequested: boolean }
  | { readonly kind: 'lost'; readonly id: string }

/** How holding an item ended. */
export type Outcome =
  | { readonly kind: 'completed' }
  /** Done, but something was passed over. */
  | { readonly kind: 'partially_completed' }
  | { readonly kind: 'failed'; readonly error: RunError }
  | { readonly kind: 'stopped' }
  /** This attempt failed; the next is due after a growing delay, at least `afterMs`. The last attempt fails the item. */
  | { readonly kind: 'retry'; readonly error: RunError; readonly afterMs?: number }
  /** Waits for somebody else, for the reason in `error` if it is more than their limit; the attempt does not count. */
  | { readonly kind: 'rate_limited'; readonly afterMs: number; readonly error?: RunError }
  /** Goes to another holder at once; the attempt does not count. */
  | { readonly kind: 'handed_back' }

/** Ends one lease. */
export interface Settlement extends LeaseKey {
  /** The lease's attempt. */
  readonly attempt: number
  readonly outcome: Outcome
}

/** What settling did: the item's status now, or that the lease was lost. */
export type Settled =
  | { readonly kind: 'settled'; readonly id: string; readonly status: string }
  | { readonly kind: 'lost'; readonly id: string }
