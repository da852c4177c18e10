import { Failure, type JsonObject } from '../../base/index.ts'
import {
  advancePreviousRuns,
  type ClaimedRun,
  countWaiting,
  type Database,
  type DecidedEnding,
  dropLeases,
  findPreviousRunDates,
  findRunEndings,
  insertTicks,
  type LeaseKey,
  markRunsRunning,
  type ResourceStats,
  RUN_QUEUE,
  type RunCarried,
  type RunDestination,
  type RunWork,
  type SettledItem,
  saveRunProgress,
  type TakenLease,
  type TriggerTicks,
  type Tx,
  updateSettledRuns,
} from '../../storage/index.ts'
import { attemptsMaxOf, QUEUE_POLICY, type QueuePolicy } from '../policy.ts'
import type { Claim, HeartbeatResult, Settled, Settlement } from '../queue.ts'
import { TableQueue } from '../table-queue.ts'
import { areFullyDelivered, resourceKeys } from './incremental.ts'
import { DAEMON_QUEUE_GROUP_PREFIX, QUEUE_DEPTH_MAX, queueGroupOf, WEBHOOK_QUEUE_GROUP } from './run-group.ts'

/** What the queue of runs needs. */
export interface RunQueueDeps {
  readonly database: Database
  /** A number in [0, 1). */
  readonly random: () => number
  /** Moves the database's clock, for tests. */
  readonly now?: (() => Date) | undefined
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
      now: deps.now,
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
    await insertTicks(
      tx,
      triggers,
      { webhook: WEBHOOK_QUEUE_GROUP, daemonPrefix: DAEMON_QUEUE_GROUP_PREFIX },
      this.#now(),
    )
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
      const begun = await withPreviousRunDates(tx, await markRunsRunning(tx, leases, this.#now()))
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
    const saved = await saveRunProgress(direct, lease, checkpoint, stats, ending, this.#policy.leaseMs, this.#now())
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
    const ended = await updateSettledRuns(tx, settled, this.#now())
    const moved = ended.flatMap(({ resources, resourceStats, args, destination, ...run }) => {
      const isMovable = areFullyDelivered(resources, resourceStats)
      const keys = resourceKeys({ resources, args, destination })
      return keys.flatMap((resourceKey, index) => (isMovable[index] ? [{ ...run, resourceKey }] : []))
    })
    await advancePreviousRuns(tx, moved)
  }

  #now(): Date | null {
    return this.#deps.now?.() ?? null
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
