import type { LeaseKey, Outcome, Settled } from '../../../../src/foundation/queue/index.ts'

/** A lease that was taken, kept after it ended: its holder may not know. */
export interface ModelLease extends LeaseKey {
  readonly attempt: number
}

/** A run as the model believes it is. */
export interface ModelRun {
  readonly id: string
  readonly account: number
  readonly group: string
  status: string
  attempt: number
  /** Attempts up to this one are no part of the limit. */
  attemptBase: number
  /** Pages it has reported. */
  pages: number
  /** Null: it does not wait. */
  availableMs: number | null
  lease: { readonly leaseId: string; expiresMs: number; stopMs: number | null } | null
}

const LEASE_MS = 30_000
const STOP_GRACE_MS = 60_000
const ATTEMPTS_MAX = 5
/** Of a delay, with the random number 0.5. */
const JITTER = 0.75

/** What the queue promises, said once more in memory and without a database. */
export class QueueModel {
  readonly runs: ModelRun[] = []

  enqueue(id: string, account: number, group: string, nowMs: number): void {
    const begun = { status: 'created', attempt: 0, attemptBase: 0, pages: 0, availableMs: nowMs, lease: null }
    this.runs.push({ id, account, group, ...begun })
  }

  claimable(group: string, nowMs: number): readonly ModelRun[] {
    const busy = new Set(this.runs.filter(({ lease }) => lease !== null).map(({ account }) => account))
    return this.runs.filter(
      (run) => run.group === group && run.availableMs !== null && run.availableMs <= nowMs && !busy.has(run.account),
    )
  }

  /** A claimant got this lease. @throws Error when it could not have been had */
  taken(lease: ModelLease & { readonly attemptsMax: number }, group: string, nowMs: number): void {
    const run = this.claimable(group, nowMs).find(({ id }) => id === lease.id)
    if (run === undefined) throw new Error(`run ${lease.id} was not to be had: ${JSON.stringify(this.find(lease.id))}`)
    if (lease.attempt !== run.attempt + 1) throw new Error(`attempt ${lease.attempt} follows ${run.attempt}`)
    if (lease.attemptsMax !== run.attemptBase + ATTEMPTS_MAX)
      throw new Error(`the last attempt is ${lease.attemptsMax}`)
    run.status = 'running'
    run.attempt = lease.attempt
    run.availableMs = null
    run.lease = { leaseId: lease.leaseId, expiresMs: nowMs + LEASE_MS, stopMs: null }
  }

  /** Renews a lease; whether a stop was requested, undefined when the lease is lost. */
  renew(key: LeaseKey, nowMs: number): boolean | undefined {
    const { lease } = this.find(key.id)
    if (lease?.leaseId !== key.leaseId) return undefined
    lease.expiresMs = nowMs + LEASE_MS
    return lease.stopMs !== null
  }

  /** Stores that a page more was read, if the lease is held. */
  progress(key: LeaseKey): void {
    const run = this.find(key.id)
    if (run.lease?.leaseId !== key.leaseId) return
    run.pages++
    run.attemptBase = run.attempt - 1
  }

  settle(key: ModelLease, outcome: Outcome, nowMs: number): Settled {
    const run = this.find(key.id)
    if (run.lease?.leaseId !== key.leaseId) return { kind: 'lost', id: key.id }
    const isStopRequested = run.lease.stopMs !== null
    run.lease = null
    this.#end(run, outcome, key.attempt, nowMs)
    if (isStopRequested && run.availableMs !== null) {
      run.status = 'stopped'
      run.availableMs = null
    }
    return { kind: 'settled', id: run.id, status: run.status }
  }

  /** Takes back what may be; returns how many. */
  reap(nowMs: number): number {
    const expired = this.runs.filter(
      ({ lease }) =>
        lease !== null &&
        (lease.expiresMs <= nowMs || (lease.stopMs !== null && lease.stopMs <= nowMs - STOP_GRACE_MS)),
    )
    for (const run of expired) {
      const isStopRequested = run.lease?.stopMs !== null
      run.lease = null
      if (isStopRequested) run.status = 'stopped'
      else if (run.attempt - run.attemptBase > ATTEMPTS_MAX) run.status = 'failed'
      else {
        run.status = 'created'
        run.availableMs = nowMs
      }
    }
    return expired.length
  }

  /** Whether a stop is accepted. */
  stop(id: string, nowMs: number): boolean {
    const run = this.find(id)
    if (run.lease !== null) run.lease.stopMs ??= nowMs
    else if (run.availableMs !== null) {
      run.status = 'stopped'
      run.availableMs = null
    }
    return run.lease !== null || run.status === 'stopped'
  }

  /** Whether a retry is accepted. */
  retry(id: string, nowMs: number): boolean {
    const run = this.find(id)
    if (run.status !== 'failed' && run.status !== 'stopped') return false
    Object.assign(run, { status: 'created', attemptBase: run.attempt, availableMs: nowMs })
    return true
  }

  find(id: string): ModelRun {
    const run = this.runs.find((each) => each.id === id)
    if (run === undefined) throw new Error(`no run ${id}`)
    return run
  }

  #end(run: ModelRun, outcome: Outcome, attempt: number, nowMs: number): void {
    const wait = (status: string, counted: number, delayMs: number) => {
      Object.assign(run, { status, attempt: counted, availableMs: nowMs + delayMs })
    }
    if (outcome.kind === 'released') wait('created', attempt - 1, 0)
    else if (outcome.kind === 'rate_limited') wait('rate_limited', attempt - 1, outcome.afterMs)
    else if (outcome.kind === 'retry' && attempt - run.attemptBase < ATTEMPTS_MAX)
      wait('created', attempt, 5_000 * 2 ** (attempt - run.attemptBase - 1) * JITTER)
    else run.status = outcome.kind === 'retry' ? 'failed' : outcome.kind
  }
}
