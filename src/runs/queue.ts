import { Failure, type JsonObject, newId } from '../base/index.ts'
import type { Database, Tx } from '../database/index.ts'
import { areFullyDelivered, resourceKeys } from './incremental.ts'
import {
  attemptsMaxOf,
  QUEUE_POLICY,
  type QueuePolicy,
  REAP_BATCH,
  resolveExpiry,
  resolveOutcome,
} from './retry-policy.ts'
import {
  type ClaimedRun,
  DAEMON_QUEUE_GROUP_PREFIX,
  type DecidedEnding,
  QUEUE_DEPTH_MAX,
  queueGroupOf,
  type ResourceStats,
  type RunDestination,
  type RunError,
  WEBHOOK_QUEUE_GROUP,
} from './run.ts'
import { advancePreviousRuns, findPreviousRunDates } from './sql/previous-run.ts'
import {
  claimItems,
  countWaiting,
  dropLeases,
  enqueueItems,
  findAttemptBases,
  type LeaseKey,
  type LeaseSettlement,
  lockExpiredLeases,
  RUN_QUEUE,
  type RunCarried,
  renewLeases,
  type SettledItem,
  settleLeases,
  type TakenLease,
  type WaitingItem,
} from './sql/queue.ts'
import type { CarriedValues, QueueSql } from './sql/queue-table.ts'
import {
  findRunEndings,
  markRunsRunning,
  type RunWork,
  saveRunProgress,
  updateSettledRuns,
} from './sql/run-execution.ts'
import { insertTicks, type TriggerTicks } from './sql/tick.ts'

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

/** What a queue over tables needs. */
export interface TableQueueDeps<Carried extends CarriedValues> {
  readonly database: Database
  readonly sql: QueueSql<Carried>
  readonly policy: QueuePolicy
  readonly random: () => number
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
    if (items.length > 0) await enqueueItems(tx, this.#deps.sql, items)
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
    return await claimItems(tx ?? database.pool, sql, request)
  }

  async heartbeat(held: readonly LeaseKey[]): Promise<readonly HeartbeatResult[]> {
    if (held.length === 0) return []
    const { database, sql, policy } = this.#deps
    const renewed = await renewLeases(database.pool, sql, held, policy.leaseMs)
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
      const expired = await lockExpiredLeases(tx, sql, policy.stopGraceMs, REAP_BATCH)
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
    const settled = await settleLeases(tx, this.#deps.sql, resolved)
    if (settled.length > 0) await this.#deps.conclude(tx, settled)
    return settled
  }
}

/** What the queue of runs needs. */
export interface RunQueueDeps {
  readonly database: Database
  /** A number in [0, 1). */
  readonly random: () => number
  readonly policy?: QueuePolicy | undefined
}

/** A stored run, as far as queueing it needs. */
export interface RunToQueue {
  readonly id: string
  readonly environmentId: string
  readonly triggerId: string | null
  readonly integratedAccountId: string
  readonly region: string
  readonly scheduledFor: Date
  readonly destination: RunDestination
  /** Attempts that were made before it was retried by hand. Absent: none. */
  readonly attempt?: number
}

/** The queue of sync runs: the seam, with runs in the place of items. */
export class RunQueue {
  readonly #deps: RunQueueDeps
  readonly #policy: QueuePolicy
  readonly #queue: TableQueue<RunCarried>

  constructor(deps: RunQueueDeps) {
    this.#deps = deps
    this.#policy = deps.policy ?? QUEUE_POLICY
    this.#queue = new TableQueue({
      database: deps.database,
      sql: RUN_QUEUE,
      policy: this.#policy,
      random: deps.random,
      conclude: (tx, settled) => this.#conclude(tx, settled),
      findEndings: findRunEndings,
    })
  }

  /** Lets stored runs wait for a worker or daemon, in the transaction that stored them. */
  async enqueue(tx: Tx, runs: readonly RunToQueue[]): Promise<void> {
    const items = runs.map((run) => ({
      id: run.id,
      environmentId: run.environmentId,
      region: run.region,
      flowId: run.integratedAccountId,
      scheduledFor: run.scheduledFor,
      triggerId: run.triggerId,
      attempt: run.attempt ?? 0,
      group: queueGroupOf(run.environmentId, run.destination),
    }))
    await this.#queue.enqueue(tx, items)
  }

  /**
   * Stores the runs of ticks, lets those wait that are to be executed, and moves the schedules on; see `insertTicks`.
   *
   * @throws a unique violation when a tick has its run already
   */
  async enqueueTicks(tx: Tx, triggers: readonly TriggerTicks[]): Promise<void> {
    await insertTicks(tx, triggers, { webhook: WEBHOOK_QUEUE_GROUP, daemonPrefix: DAEMON_QUEUE_GROUP_PREFIX })
  }

  /**
   * Leases runs, marks them running and loads what to do. One running run per account, whoever claims at the same moment.
   *
   * Lease and record are one commit, which is on the disk before the holder hears of it: a crash of the database leaves no
   * holder without a lease, and no held run that is not marked running.
   */
  async claim(claim: Claim): Promise<readonly ClaimedRun[]> {
    return await this.#deps.database.transaction(async (tx) => {
      const leases = await this.#queue.claim(claim, tx)
      if (leases.length === 0) return []
      const begun = await withPreviousRunDates(tx, await markRunsRunning(tx, leases))
      const work = new Map(begun.map((each) => [each.id, each]))
      const orphans = leases.filter(({ id }) => !work.has(id))
      if (orphans.length > 0) await dropLeases(tx, orphans) // their day was dropped while they waited
      return leases.flatMap((lease) => {
        const found = work.get(lease.id)
        return found === undefined ? [] : [toClaimedRun(this.#policy, lease, found)]
      })
    })
  }

  /**
   * Stores what a run has done and renews its lease, together. What is null stays as it is.
   *
   * @throws Failure LEASE_LOST when the lease is somebody else's by now; nothing was stored
   */
  async save(
    lease: LeaseKey,
    checkpoint: JsonObject | null,
    stats: readonly ResourceStats[] | null,
    ending: DecidedEnding | null = null,
  ): Promise<{ readonly isStopRequested: boolean }> {
    const { pool: direct } = this.#deps.database
    const saved = await saveRunProgress(direct, lease, checkpoint, stats, ending, this.#policy.leaseMs)
    if (saved === undefined) throw leaseLost(lease.id)
    return saved
  }

  async heartbeat(held: readonly LeaseKey[]): Promise<readonly HeartbeatResult[]> {
    return await this.#queue.heartbeat(held)
  }

  async settle(settlements: readonly Settlement[]): Promise<readonly Settled[]> {
    return await this.#queue.settle(settlements)
  }

  async reap(): Promise<number> {
    return await this.#queue.reap()
  }

  /** How many runs wait in each group, up to GROUP_QUEUED_MAX, by `environmentId/group`. */
  async countWaiting(
    tx: Tx,
    groups: readonly { readonly environmentId: string; readonly group: string }[],
  ): Promise<ReadonlyMap<string, number>> {
    const counts = await countWaiting(tx, RUN_QUEUE, groups, QUEUE_DEPTH_MAX)
    return new Map(counts.map(({ environmentId, group, waiting }) => [queueGroupKey(environmentId, group), waiting]))
  }

  async #conclude(tx: Tx, settled: readonly (SettledItem & RunCarried)[]): Promise<void> {
    const ended = await updateSettledRuns(tx, settled)
    const moved = ended.flatMap(({ resources, resourceStats, args, destination, ...run }) => {
      const isMovable = areFullyDelivered(resources, resourceStats)
      const keys = resourceKeys({ resources, args, destination })
      return keys.flatMap((resourceKey, index) => (isMovable[index] ? [{ ...run, resourceKey }] : []))
    })
    await advancePreviousRuns(tx, moved)
  }
}

/** One name for a group of an environment. */
export function queueGroupKey(environmentId: string, group: string): string {
  return `${environmentId}/${group}`
}

/** The refusal of a write by a holder whose lease has gone to another. */
export function leaseLost(runId: string): Failure {
  return new Failure(
    'LEASE_LOST',
    `the lease on run ${runId} has ended and may be another holder's; stop working on it`,
    {
      resource: { type: 'sync_job_run', id: runId },
    },
  )
}

/** A leased run with the dates from which its incremental syncs go on. */
type DatedRunWork = Omit<RunWork, 'ignorePreviousRun'> & Pick<ClaimedRun, 'previousRunDates'>

/** Finds out where the incremental syncs of runs begin, in one statement. */
async function withPreviousRunDates(tx: Tx, runs: readonly RunWork[]): Promise<readonly DatedRunWork[]> {
  const keys = runs.map((run) =>
    run.ignorePreviousRun ? [] : resourceKeys(run).map((resourceKey) => ({ ...run, resourceKey })),
  )
  const dates = (await findPreviousRunDates(tx, keys.flat())).values()
  return runs.map(({ ignorePreviousRun, ...run }) => ({
    ...run,
    previousRunDates: run.resources.map(() => (ignorePreviousRun ? null : (dates.next().value ?? null))),
  }))
}

function toClaimedRun(policy: QueuePolicy, lease: TakenLease, work: DatedRunWork): ClaimedRun {
  const { attempt, leaseId, expiresAt: leaseExpiresAt } = lease
  return { ...work, attempt, attemptsMax: attemptsMaxOf(policy, lease), leaseId, leaseExpiresAt }
}
