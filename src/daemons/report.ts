import { invalidFields, type JsonObject, notFound, type Violation } from '../base/index.ts'
import type { Database } from '../database/index.ts'
import {
  completedStatusOf,
  findRun,
  getRun,
  isStatsOf,
  type LeaseKey,
  leaseLost,
  type Outcome,
  type ResourceStats,
  type Run,
  type RunError,
  type RunQueue,
} from '../runs/index.ts'
import { findIncompleteness } from '../syncs/index.ts'
import { type ActiveLease, findActiveLeases } from './sql.ts'

/** What reports need. */
export interface ReportDeps {
  readonly database: Pick<Database, 'pool'>
  readonly queue: Pick<RunQueue, 'save' | 'settle'>
}

/** How far a run has come; what is absent stays as it was reported last. */
export interface ReportedProgress {
  readonly checkpoint?: JsonObject | undefined
  /** From the beginning of the run. Empty: absent. */
  readonly stats: readonly ResourceStats[]
}

/**
 * Stores how far a run has come and renews its lease, both or neither.
 *
 * @throws Failure RESOURCE_NOT_FOUND for a run that the environment does not have, LEASE_LOST
 */
export async function reportProgress(
  deps: ReportDeps,
  environmentId: string,
  key: LeaseKey,
  progress: ReportedProgress,
): Promise<{ readonly isStopRequested: boolean }> {
  return await saveReported(deps, await getActiveLease(deps, environmentId, key), progress)
}

/**
 * Ends a run that is done: as `completed` when its final counters say that every resource is complete.
 *
 * @throws Failure like `reportProgress`; INVALID_FIELD when the final counters are not those of the run's resources, or
 * contradict themselves: then the lease goes on
 */
export async function completeRun(
  deps: ReportDeps,
  environmentId: string,
  key: LeaseKey,
  progress: ReportedProgress,
): Promise<Run> {
  await getActiveLease(deps, environmentId, key)
  const { resources, resourceStats } = await getRun(deps.database.pool, environmentId, key.id)
  const final = progress.stats.length === 0 ? resourceStats : progress.stats
  const violations = final.length === 0 ? [] : checkFinalStats(resources, final)
  if (violations.length > 0) throw invalidFields(violations)
  return await settleReported(deps, environmentId, key, progress, { kind: completedStatusOf(resources, final) })
}

/** Where the next run begins depends on these, so a daemon may not say more than it has done. */
function checkFinalStats(resources: readonly JsonObject[], final: readonly ResourceStats[]): readonly Violation[] {
  const finding = (field: string, description: string) => [{ field, description, rule: 'resource_stats.final' }]
  if (final.length !== resources.length)
    return finding('resource_stats', `must have one entry for each of the ${resources.length} resources of the run`)
  return resources.flatMap((resource, index) => {
    const [stats, at] = [final[index], `resource_stats[${index}]`]
    if (stats === undefined || !isStatsOf(resource, stats))
      return finding(`${at}.resource`, `must be ${resource.resource}.${resource.method}, as in the run's resources`)
    const contradiction = stats.complete ? findIncompleteness(stats) : undefined
    return contradiction === undefined ? [] : finding(`${at}.complete`, `must be false: ${contradiction}`)
  })
}

/** What reporting a failure needs. */
export interface FailureDeps extends ReportDeps {
  /** Takes the secrets of an account out of a text. */
  readonly redact: (environmentId: string, integratedAccountId: string, text: string) => Promise<string>
}

/**
 * Ends an attempt; the run goes on later when that may help and attempts are left. A daemon may quote what a third party
 * said: its message is stored without the secrets of the account.
 *
 * @throws Failure like `reportProgress`
 */
export async function failRun(
  deps: FailureDeps,
  environmentId: string,
  key: LeaseKey,
  progress: ReportedProgress,
  how: { readonly error: RunError; readonly isRetryable: boolean; readonly waitMs?: number | undefined },
): Promise<Run> {
  const { isRetryable, waitMs = 0 } = how
  const { integratedAccountId } = await getRun(deps.database.pool, environmentId, key.id)
  const message = await deps.redact(environmentId, integratedAccountId, how.error.message)
  const error = { ...how.error, message }
  const outcome: Outcome = isRetryable ? { kind: 'retry', error, afterMs: waitMs } : { kind: 'failed', error }
  return await settleReported(deps, environmentId, key, progress, outcome)
}

/**
 * Gives a run back unfinished, and no attempt is counted: to the next daemon at once, or after the wait that a third party
 * asked for. A run that was to stop is stopped.
 *
 * @throws Failure like `reportProgress`
 */
export async function releaseRun(
  deps: ReportDeps,
  environmentId: string,
  key: LeaseKey,
  progress: ReportedProgress,
  waitMs: number | undefined,
): Promise<Run> {
  const outcome: Outcome = waitMs === undefined ? { kind: 'handed_back' } : { kind: 'rate_limited', afterMs: waitMs }
  return await settleReported(deps, environmentId, key, progress, outcome)
}

async function settleReported(
  deps: ReportDeps,
  environmentId: string,
  key: LeaseKey,
  progress: ReportedProgress,
  outcome: Outcome,
): Promise<Run> {
  const lease = await getActiveLease(deps, environmentId, key)
  if (progress.checkpoint !== undefined || progress.stats.length > 0) await saveReported(deps, lease, progress)
  const [settled] = await deps.queue.settle([{ ...lease, outcome }])
  if (settled?.kind !== 'settled') throw leaseLost(key.id)
  return await getRun(deps.database.pool, environmentId, key.id)
}

async function saveReported({ queue }: ReportDeps, lease: ActiveLease, { checkpoint, stats }: ReportedProgress) {
  return await queue.save(lease, checkpoint ?? null, stats.length === 0 ? null : stats)
}

/**
 * The lease, if it is one of the environment. Whatever is written afterwards names it too, so it may be lost in between.
 *
 * @throws Failure RESOURCE_NOT_FOUND, LEASE_LOST
 */
async function getActiveLease({ database }: ReportDeps, environmentId: string, key: LeaseKey): Promise<ActiveLease> {
  const [lease] = await findActiveLeases(database.pool, environmentId, [key])
  if (lease !== undefined) return lease
  if ((await findRun(database.pool, environmentId, key.id)) === undefined) throw notFound('sync_job_run', key.id)
  throw leaseLost(key.id)
}
