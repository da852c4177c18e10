import { newId } from '../base/index.ts'
import {
  type CarriedValues,
  claimItems,
  type Database,
  type DecidedEnding,
  enqueueItems,
  findAttemptBases,
  type LeaseKey,
  type LeaseSettlement,
  lockExpiredLeases,
  type QueueSql,
  renewLeases,
  type SettledItem,
  settleLeases,
  type TakenLease,
  type Tx,
  type WaitingItem,
} from '../storage/index.ts'
import { type QueuePolicy, REAP_BATCH, resolveExpiry, resolveOutcome } from './policy.ts'
import type { Claim, HeartbeatResult, Queue, Settled, Settlement } from './queue.ts'

/** What a queue over tables needs. */
export interface TableQueueDeps<Carried extends CarriedValues> {
  readonly database: Database
  readonly sql: QueueSql<Carried>
  readonly policy: QueuePolicy
  readonly random: () => number
  /** Moves the database's clock, for tests. Absent: the clock as it is. */
  readonly now?: (() => Date) | undefined
  /** Writes the records of items, and what else follows, in the transaction that settled them. */
  readonly conclude: (tx: Tx, settled: readonly (SettledItem & Carried)[]) => Promise<void>
  /** The endings that holders decided on and may have told, by item. */
  readonly findEndings: (tx: Tx, ids: readonly string[]) => Promise<ReadonlyMap<string, DecidedEnding>>
}

/** The queue seam over a waiting and a lease table. Keeps no state of its own: any number of processes share it. */
export class TableQueue<Carried extends CarriedValues> implements Queue<Carried> {
  readonly #deps: TableQueueDeps<Carried>

  constructor(deps: TableQueueDeps<Carried>) {
    this.#deps = deps
  }

  async enqueue(tx: Tx, items: readonly (WaitingItem & Carried)[]): Promise<void> {
    if (items.length > 0) await enqueueItems(tx, this.#deps.sql, items, this.#now())
  }

  /** @param tx the transaction in which the claimant goes on to write; absent: the claim is one of its own */
  async claim(claim: Claim, tx?: Tx): Promise<readonly (TakenLease & Carried)[]> {
    const { database, sql, policy } = this.#deps
    const request = {
      group: claim.group,
      holder: claim.holder,
      regions: claim.regions ?? null,
      leaseIds: Array.from({ length: claim.limit }, () => newId()),
      heldMax: claim.heldMax ?? null,
      leaseMs: policy.leaseMs,
    }
    return await claimItems(tx ?? database.pool, sql, request, this.#now())
  }

  async heartbeat(held: readonly LeaseKey[]): Promise<readonly HeartbeatResult[]> {
    if (held.length === 0) return []
    const { database, sql, policy } = this.#deps
    const renewed = await renewLeases(database.pool, sql, held, policy.leaseMs, this.#now())
    const byLease = new Map(renewed.map(({ leaseId, ...lease }) => [leaseId, lease]))
    return held.map(({ id, leaseId }) => {
      const lease = byLease.get(leaseId)
      return lease === undefined ? { kind: 'lost', id } : { kind: 'held', ...lease }
    })
  }

  async settle(settlements: readonly Settlement[]): Promise<readonly Settled[]> {
    if (settlements.length === 0) return []
    const settled = await this.#deps.database.transaction(async (tx) => {
      return await this.#settle(tx, await this.#resolve(tx, settlements))
    })
    const statusOf = new Map(settled.map(({ leaseId, status }) => [leaseId, status]))
    return settlements.map(({ id, leaseId }) => {
      const status = statusOf.get(leaseId)
      return status === undefined ? { kind: 'lost', id } : { kind: 'settled', id, status }
    })
  }

  async reap(): Promise<number> {
    const { database, sql, policy } = this.#deps
    return await database.transaction(async (tx) => {
      const expired = await lockExpiredLeases(tx, sql, policy.stopGraceMs, REAP_BATCH, this.#now())
      if (expired.length === 0) return 0
      const endings = await this.#deps.findEndings(
        tx,
        expired.map(({ id }) => id),
      )
      const resolved = expired.map(({ id, leaseId, isStopRequested, ...attempts }) => {
        return { id, leaseId, ...resolveExpiry(policy, attempts, isStopRequested, endings.get(id)) }
      })
      return (await this.#settle(tx, resolved)).length
    })
  }

  /** Only attempts that failed are measured against the limit, which the lease knows. */
  async #resolve(tx: Tx, settlements: readonly Settlement[]): Promise<readonly LeaseSettlement[]> {
    const { policy, random, sql } = this.#deps
    const failed = settlements.filter(({ outcome }) => outcome.kind === 'retry').map(({ id }) => id)
    const bases = failed.length === 0 ? undefined : await findAttemptBases(tx, sql, failed)
    return settlements.map(({ id, leaseId, attempt, outcome }) => {
      const attempts = { attempt, attemptBase: bases?.get(id) ?? 0 }
      return { id, leaseId, ...resolveOutcome(policy, attempts, outcome, random) }
    })
  }

  async #settle(tx: Tx, resolved: readonly LeaseSettlement[]): Promise<readonly (SettledItem & Carried)[]> {
    const settled = await settleLeases(tx, this.#deps.sql, resolved, this.#now())
    if (settled.length > 0) await this.#deps.conclude(tx, settled)
    return settled
  }

  #now(): Date | null {
    return this.#deps.now?.() ?? null
  }
}
