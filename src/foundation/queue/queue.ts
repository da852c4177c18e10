import type { Random } from '../base/backoff.ts'
import { newId } from '../base/ids.ts'
import type { Database, Db } from '../database/database.ts'
import type { DecidedEnding, Outcome } from './outcome.ts'
import { type QueuePolicy, REAP_BATCH, resolveExpiry, resolveOutcome } from './retry-policy.ts'
import type { Lease } from './sql/due.ts'
import {
  claimItems,
  findAttemptBases,
  type LeaseKey,
  type LeaseSettlement,
  lockExpiredLeases,
  type QueuedItem,
  type QueueTable,
  renewLeases,
  type SettledItem,
  settleLeases,
} from './sql/queue.ts'
import { type Availability, claimRoundRobin, type KeyLimit } from './sql/round-robin-claim.ts'

/** What a holder asks for. */
export interface Claim {
  readonly group: string
  readonly holder: string
  readonly limit: number
  /** Only items of these regions. Absent: of any. */
  readonly regions?: readonly string[] | undefined
  /** Items of the group that all holders together may hold; two claims at the same moment may exceed it. */
  readonly heldMax?: number
}

/** What a holder asks for of a queue whose concurrency keys take turns. */
export interface TurnClaim extends Pick<Claim, 'group' | 'holder' | 'limit'> {
  /** For keys that may have another number of leases than `QueueTable.leasesPerKey`. */
  readonly keyLimits?: readonly KeyLimit[]
}

/** The answer to a heartbeat: the lease was renewed, or another holder may have the item and the work must end at once. */
export type HeartbeatResult =
  | { readonly kind: 'held'; readonly id: string; readonly expiresAt: Date; readonly isStopRequested: boolean }
  | { readonly kind: 'lost'; readonly id: string }

/** Ends one lease with an outcome. */
export interface Settlement<Result = undefined> extends LeaseKey {
  /** The lease's attempt. */
  readonly attempt: number
  readonly outcome: Outcome
  /** What the work has led to, which is recorded when the lease was held until then. */
  readonly result?: Result
}

/** An item whose lease has ended, with the result of its holder; `undefined` when that has lost the lease. */
export type SettledWork<Payload, Result = undefined> = SettledItem & Payload & { readonly result: Result | undefined }

/** What settling did: the item's status now, or that the lease was lost. */
export type Settled =
  | { readonly kind: 'settled'; readonly id: string; readonly status: string }
  | { readonly kind: 'lost'; readonly id: string }

/** What a queue needs. */
export interface QueueDeps {
  readonly database: Database
  readonly random: Random
  readonly policy: QueuePolicy
}

/** Visits of keys per claim. */
const VISITS_MAX = 8

/**
 * A queue over two tables: at-least-once, fair between concurrency keys, fenced by leases. A holder that has lost its lease
 * can neither renew nor settle it. Keeps no state but whose turn it is: any number of processes share it.
 *
 * Each kind of work is a subclass with its tables and its records.
 */
export abstract class Queue<Payload, Result = undefined> {
  protected readonly deps: QueueDeps
  readonly #table: QueueTable
  /** By queue group, the concurrency key that was visited last. */
  readonly #turns = new Map<string, string>()

  constructor(deps: QueueDeps, table: QueueTable) {
    this.deps = deps
    this.#table = table
  }

  /** Writes the records of settled items, and what follows from it, in the transaction that settled them. */
  protected abstract recordSettled(tx: Db, settled: readonly SettledWork<Payload, Result>[]): Promise<void>

  /** The endings that holders decided on and may have reported, by item; none where work is not reported before it ends. */
  protected async findEndings(_tx: Db, _ids: readonly string[]): Promise<ReadonlyMap<string, DecidedEnding>> {
    return new Map()
  }

  /** Leases up to `limit` items, fairly between concurrency keys. */
  protected async lease(tx: Db, claim: Claim): Promise<readonly Lease<QueuedItem & Payload>[]> {
    return await claimItems(tx, this.#table, {
      group: claim.group,
      holder: claim.holder,
      regions: claim.regions ?? null,
      leaseIds: Array.from({ length: claim.limit }, () => newId()),
      heldMax: claim.heldMax ?? null,
      leaseMs: this.deps.policy.leaseMs,
    })
  }

  /**
   * Leases up to `limit` items of a table with `leasesPerKey`; the keys take turns. Every key has had its turn when fewer are
   * returned, unless there are more than `VISITS_MAX` times those of one visit.
   */
  protected async leaseInTurns(
    tx: Db,
    claim: TurnClaim,
  ): Promise<readonly Lease<QueuedItem & Availability & Payload>[]> {
    const { group, holder, limit, keyLimits = [] } = claim
    const leases: Lease<QueuedItem & Availability & Payload>[] = []
    let isOver = false
    for (let visits = 0; visits < VISITS_MAX && leases.length < limit && !isOver; visits++) {
      const visit = await claimRoundRobin<Payload>(tx, this.#table, {
        group,
        holder,
        afterKey: this.#turns.get(group) ?? null,
        keyLimits,
        leaseIds: Array.from({ length: limit - leases.length }, () => newId()),
        leaseMs: this.deps.policy.leaseMs,
      })
      leases.push(...visit.leases)
      if (visit.lastKey !== null) this.#turns.set(group, visit.lastKey)
      // Another round follows while keys have more than their share of it.
      isOver = visit.isWhole && !visit.hasMore
    }
    return leases
  }

  /** Renews leases; the answer has one entry for every lease asked about. */
  async heartbeat(held: readonly LeaseKey[]): Promise<readonly HeartbeatResult[]> {
    if (held.length === 0) return []
    const { database, policy } = this.deps
    const renewed = await renewLeases(database.pool, this.#table, held, policy.leaseMs)
    const byLease = new Map(renewed.map(({ leaseId, ...lease }) => [leaseId, lease]))
    return held.map(({ id, leaseId }) => {
      const lease = byLease.get(leaseId)
      return lease === undefined ? { kind: 'lost', id } : { kind: 'held', ...lease }
    })
  }

  /** Ends leases; the answer has one entry for every lease asked about, and a lost one changed nothing. */
  async settle(settlements: readonly Settlement<Result>[]): Promise<readonly Settled[]> {
    if (settlements.length === 0) return []
    const settled = await this.deps.database.transaction(async (tx) => {
      const results = new Map(settlements.map(({ leaseId, result }) => [leaseId, result]))
      return await this.#settle(tx, await this.#resolve(tx, settlements), results)
    })
    const statusOf = new Map(settled.map(({ leaseId, status }) => [leaseId, status]))
    return settlements.map(({ id, leaseId }) => {
      const status = statusOf.get(leaseId)
      return status === undefined ? { kind: 'lost', id } : { kind: 'settled', id, status }
    })
  }

  /** Takes back leases that expired or ignored a request to stop; returns how many. Call until it returns 0. */
  async reap(): Promise<number> {
    const { database, policy } = this.deps
    return await database.transaction(async (tx) => {
      const expired = await lockExpiredLeases(tx, this.#table, policy.stopGraceMs, REAP_BATCH)
      if (expired.length === 0) return 0
      const endings = await this.findEndings(
        tx,
        expired.map(({ id }) => id),
      )
      const resolved = expired.map(({ id, leaseId, isStopRequested, ...attempts }) => {
        return { id, leaseId, ...resolveExpiry(policy, attempts, isStopRequested, endings.get(id)) }
      })
      return (await this.#settle(tx, resolved, new Map())).length
    })
  }

  /** Only failed attempts are measured against the limit, whose base the lease knows. */
  async #resolve(tx: Db, settlements: readonly Settlement<Result>[]): Promise<readonly LeaseSettlement[]> {
    const { policy, random } = this.deps
    const failed = settlements.filter(({ outcome }) => outcome.kind === 'retry').map(({ id }) => id)
    const bases = failed.length === 0 ? undefined : await findAttemptBases(tx, this.#table, failed)
    return settlements.map(({ id, leaseId, attempt, outcome }) => {
      const attempts = { attempt, attemptBase: bases?.get(id) ?? 0 }
      return { id, leaseId, ...resolveOutcome(policy, attempts, outcome, random) }
    })
  }

  async #settle(
    tx: Db,
    resolved: readonly LeaseSettlement[],
    results: ReadonlyMap<string, Result | undefined>,
  ): Promise<readonly SettledItem[]> {
    const settled = await settleLeases<Payload>(tx, this.#table, resolved)
    const work = settled.map((item) => ({ ...item, result: results.get(item.leaseId) }))
    if (work.length > 0) await this.recordSettled(tx, work)
    return settled
  }
}
