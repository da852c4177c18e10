import type { Db, Tx } from '../../foundation/database/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import type { Lease } from '../../foundation/queue/index.ts'
import {
  attemptsMaxOf,
  type Claim,
  countWaiting,
  insertWaiting,
  type LeaseKey,
  QUEUE_POLICY,
  Queue,
  type QueueDeps,
  type QueuedItem,
  type QueuePolicy,
  type SettledItem,
} from '../../foundation/queue/index.ts'
import { areFullyDelivered, dateToReadFrom, resourceKeys } from './incremental.ts'
import { leaseLost } from './lease-timer.ts'
import {
  DAEMON_QUEUE_GROUP_PREFIX,
  QUEUE_DEPTH_MAX,
  type QueuedRun,
  queueGroupOf,
  type ResourceStats,
  type RunDestination,
  type RunEnding,
  WEBHOOK_QUEUE_GROUP,
} from './run.ts'
import { recordRunEvents } from './run-events.ts'
import { STATUS_EVENTS } from './run-payload.ts'
import { advancePreviousRuns, findPreviousRunDates } from './sql/previous-run.ts'
import type { RunChange } from './sql/run-events.ts'
import {
  findRunEndings,
  markRunsRunning,
  type RunWork,
  saveRunProgress,
  updateSettledRuns,
} from './sql/run-execution.ts'
import { dropLeases, RUN_QUEUE, type RunPayload } from './sql/run-queue.ts'
import { recordRunWait } from './sql/run-wait.ts'
import { insertTicks, type TickRun, type TriggerTicks } from './sql/tick.ts'

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

/** The queue of sync runs; the account is the concurrency key. */
export class RunQueue extends Queue<RunPayload> {
  constructor({ policy = QUEUE_POLICY, ...deps }: Omit<QueueDeps, 'policy'> & Partial<Pick<QueueDeps, 'policy'>>) {
    super({ ...deps, policy }, RUN_QUEUE)
  }

  /** Puts stored runs into the queue, in the transaction that stored them. */
  async enqueue(tx: Tx, runs: readonly RunToQueue[]): Promise<void> {
    const items = runs.map((run) => ({
      run_id: run.id,
      environment_id: run.environmentId,
      region: run.region,
      queue_group: queueGroupOf(run.environmentId, run.destination),
      integrated_account_id: run.integratedAccountId,
      scheduled_for: run.scheduledFor.toISOString(),
      trigger_id: run.triggerId,
      attempt: run.attempt ?? 0,
    }))
    await insertWaiting(tx, RUN_QUEUE, items)
  }

  /**
   * Stores the runs of ticks with their events, queues those that are to be executed, and advances the schedules; see
   * `insertTicks`.
   *
   * @throws a unique violation when a tick has its run already
   */
  async enqueueTicks(tx: Tx, triggers: readonly TriggerTicks[]): Promise<void> {
    const groups = { webhook: WEBHOOK_QUEUE_GROUP, daemonPrefix: DAEMON_QUEUE_GROUP_PREFIX }
    await recordRunEvents(tx, (await insertTicks(tx, triggers, groups)).flatMap(tickEvents))
  }

  /**
   * Leases runs, marks them running and loads what to do. An account has one running run, however many processes claim at
   * the same moment.
   *
   * Lease and record are one durable commit before the holder knows of them: after a crash of the database no holder is
   * without a lease, and every leased run is marked running.
   */
  async claim(claim: Claim): Promise<readonly Lease<QueuedRun>[]> {
    return await this.deps.database.transaction(async (tx) => {
      const leases = await this.lease(tx, claim)
      if (leases.length === 0) return []
      const work = new Map((await loadWork(tx, leases)).map((each) => [each.id, each]))
      const orphans = leases.filter(({ id }) => !work.has(id))
      if (orphans.length > 0) await dropLeases(tx, orphans) // their day was dropped while they waited
      return leases.flatMap((lease) => {
        const found = work.get(lease.id)
        return found === undefined ? [] : [claimedRunFrom(this.deps.policy, lease, found)]
      })
    })
  }

  /**
   * Stores the progress of a run and renews its lease, both or neither. What is null stays as it is.
   *
   * @throws Failure LEASE_LOST when another holder may have the lease; nothing was stored
   */
  async save(
    lease: LeaseKey,
    checkpoint: JsonObject | null,
    stats: readonly ResourceStats[] | null,
    ending: RunEnding | null = null,
  ): Promise<{ readonly isStopRequested: boolean }> {
    const { leaseMs } = this.deps.policy
    const saved = await saveRunProgress(this.deps.database.pool, lease, { checkpoint, stats, ending, leaseMs })
    if (saved === undefined) throw leaseLost(lease.id)
    return saved
  }

  /** Shows on a run that its holder waits for a rate limit for the next `ms`; without effect when the lease is lost. */
  async showWait(lease: LeaseKey, ms: number): Promise<void> {
    await recordRunWait(this.deps.database.pool, lease, ms)
  }

  /** How many runs wait in each group, up to QUEUE_DEPTH_MAX, by `queueGroupKey`. */
  async countWaiting(
    tx: Db,
    groups: readonly { readonly environmentId: string; readonly group: string }[],
  ): Promise<ReadonlyMap<string, number>> {
    const counts = await countWaiting(tx, RUN_QUEUE, groups, QUEUE_DEPTH_MAX)
    return new Map(counts.map(({ environmentId, group, waiting }) => [queueGroupKey(environmentId, group), waiting]))
  }

  protected override async findEndings(tx: Tx, ids: readonly string[]): Promise<ReadonlyMap<string, RunEnding>> {
    return await findRunEndings(tx, ids)
  }

  protected override async recordSettled(tx: Tx, settled: readonly (SettledItem & RunPayload)[]): Promise<void> {
    const { completed, asked } = await updateSettledRuns(tx, settled)
    const delivered = completed.flatMap(({ resources, resourceStats, args, destination, ...run }) => {
      const isDelivered = areFullyDelivered(resources, resourceStats)
      const keys = resourceKeys({ resources, args, destination })
      return keys.flatMap((resourceKey, index) => (isDelivered[index] ? [{ ...run, resourceKey }] : []))
    })
    await advancePreviousRuns(tx, delivered)
    await recordRunEvents(
      tx,
      asked.map(({ status, ...run }) => ({ ...run, type: STATUS_EVENTS[status] })),
    )
  }
}

/** Map key of a queue group of an environment. */
export function queueGroupKey(environmentId: string, group: string): string {
  return `${environmentId}/${group}`
}

function claimEvent({ id, scheduledFor, isFirst }: RunWork): RunChange {
  return { id, scheduledFor, type: isFirst ? 'sync_job_run:started' : 'sync_job_run:updated' }
}

/** The events of the run of a tick. An overlap is no failure: the run before reads on. */
function tickEvents({ id, scheduledFor, skipReason }: TickRun): readonly RunChange[] {
  const created: RunChange = { id, scheduledFor, type: 'sync_job_run:created' }
  if (skipReason === null || skipReason === 'overlap') return [created]
  return [created, { id, scheduledFor, type: 'sync_job_cron_trigger:failed' }]
}

/** A leased run with the dates from which its incremental syncs read. */
type DatedRunWork = Omit<RunWork, 'ignorePreviousRun' | 'isFirst' | 'isAsked'> &
  Pick<Lease<QueuedRun>, 'previousRunDates'>

/** Marks leased runs running and loads their work, in two statements. */
async function loadWork(tx: Tx, leases: readonly Lease<QueuedItem & RunPayload>[]): Promise<readonly DatedRunWork[]> {
  const runs = await markRunsRunning(tx, leases)
  await recordRunEvents(tx, runs.filter(({ isAsked }) => isAsked).map(claimEvent))
  const keys = runs.map((run) =>
    run.ignorePreviousRun ? [] : resourceKeys(run).map((resourceKey) => ({ ...run, resourceKey })),
  )
  const dates = (await findPreviousRunDates(tx, keys.flat())).values()
  return runs.map(({ ignorePreviousRun, isFirst, isAsked, ...run }) => ({
    ...run,
    previousRunDates: run.resources.map((resource) =>
      ignorePreviousRun ? null : dateToReadFrom(resource, dates.next().value ?? null),
    ),
  }))
}

function claimedRunFrom(policy: QueuePolicy, lease: Lease<QueuedItem>, work: DatedRunWork): Lease<QueuedRun> {
  const { attempt, leaseId, expiresAt: leaseExpiresAt } = lease
  const attemptsMax = attemptsMaxOf(policy, lease)
  return { ...work, attempt, attemptsMax, attemptsExhausted: attempt > attemptsMax, leaseId, leaseExpiresAt }
}
