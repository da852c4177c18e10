import { invalidFields, notFound, type Violation } from '../../foundation/base/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import type { LeaseKey, Outcome } from '../../foundation/queue/index.ts'
import { findIncompleteness } from '../jobs/run-stats.ts'
import { completedStatusOf, isStatsOf } from '../runs/incremental.ts'
import { leaseLost } from '../runs/lease-timer.ts'
import { getRun } from '../runs/read-runs.ts'
import type { ResourceStats, Run, RunError } from '../runs/run.ts'
import { findRun } from '../runs/sql/run.ts'
import type { DaemonsDeps } from './daemon.ts'
import { type ActiveLease, findActiveLeases } from './sql.ts'

type ReportDeps = Pick<DaemonsDeps, 'database' | 'queue' | 'redactor'>

/** Reported progress of a run; what is absent stays as in the last report. */
export interface ReportedProgress {
  readonly checkpoint?: JsonObject | undefined
  /** From the beginning of the run. Empty: absent. */
  readonly stats: readonly ResourceStats[]
}

/** Progress of a run that goes on. */
export interface ReportedState extends ReportedProgress {
  /** The daemon waits for the rate limit of the third party for so long from now. */
  readonly waitMs?: number | undefined
}

/**
 * Stores the progress of a run and renews its lease, both or neither; then shows the wait, if there is one.
 *
 * @throws Failure RESOURCE_NOT_FOUND for a run that the environment does not have, LEASE_LOST
 */
export async function reportProgress(
  deps: ReportDeps,
  environmentId: string,
  key: LeaseKey,
  { waitMs, ...progress }: ReportedState,
): Promise<{ readonly isStopRequested: boolean }> {
  const saved = await saveReported(deps, environmentId, await getActiveLease(deps, environmentId, key), progress)
  if (waitMs !== undefined) await deps.queue.showWait(key, waitMs)
  return saved
}

/**
 * Ends a run that is done: as `completed` when its final counters say that every resource is complete.
 *
 * @throws Failure like `reportProgress`; INVALID_FIELD when the final counters are not those of the run's resources, or
 * contradict themselves: then the lease still holds
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

/** Incremental syncs continue from these counters, so a daemon may not report more than it has done. */
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

/**
 * Ends an attempt; the run is retried when the error is retryable and attempts are left. The message may contain what a
 * third party answered: it is stored without the secrets of the account.
 *
 * @throws Failure like `reportProgress`
 */
export async function failRun(
  deps: ReportDeps,
  environmentId: string,
  key: LeaseKey,
  progress: ReportedProgress,
  how: {
    readonly error: RunError
    readonly isRetryable: boolean
    readonly isUncounted?: boolean
    readonly waitMs?: number | undefined
  },
): Promise<Run> {
  const { isRetryable, isUncounted = false, waitMs = 0 } = how
  const error = await withoutSecretsOf(deps, environmentId, key, how.error)
  const retry: Outcome = { kind: 'retry', error, afterMs: waitMs, ...(isUncounted ? { isUncounted } : {}) }
  const outcome: Outcome = isRetryable ? retry : { kind: 'failed', error }
  return await settleReported(deps, environmentId, key, progress, outcome)
}

/**
 * Releases a run without counting an attempt: for the next daemon at once, or after a wait, for the store of the daemon when that
 * is the error, else as a third party asked. A run that should stop is stopped.
 *
 * @throws Failure like `reportProgress`
 */
export async function releaseRun(
  deps: ReportDeps,
  environmentId: string,
  key: LeaseKey,
  progress: ReportedProgress,
  wait: { readonly ms: number; readonly error?: RunError | undefined } | undefined,
): Promise<Run> {
  const outcome: Outcome =
    wait === undefined
      ? { kind: 'released' }
      : {
          kind: 'rate_limited',
          afterMs: wait.ms,
          ...(wait.error && { error: await withoutSecretsOf(deps, environmentId, key, wait.error) }),
        }
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
  if (progress.checkpoint !== undefined || progress.stats.length > 0)
    await saveReported(deps, environmentId, lease, progress)
  const [settled] = await deps.queue.settle([{ ...lease, outcome }])
  if (settled?.kind !== 'settled') throw leaseLost(key.id)
  return await getRun(deps.database.pool, environmentId, key.id)
}

async function saveReported(
  deps: ReportDeps,
  environmentId: string,
  lease: ActiveLease,
  { checkpoint, stats }: ReportedProgress,
) {
  const stored = stats.length === 0 ? null : await withoutSecrets(deps, environmentId, lease, stats)
  return await deps.queue.save(lease, checkpoint ?? null, stored)
}

/** The counters with the secrets of the account masked in their errors. */
async function withoutSecrets(
  deps: ReportDeps,
  environmentId: string,
  { integratedAccountId }: ActiveLease,
  stats: readonly ResourceStats[],
): Promise<readonly ResourceStats[]> {
  if (stats.every(({ errors, warnings }) => errors === undefined && warnings === undefined)) return stats
  const redact = await deps.redactor(environmentId, integratedAccountId)
  return stats.map(({ errors, warnings, ...counts }) => ({
    ...counts,
    ...(errors === undefined ? {} : { errors: errors.map((error) => redactError(redact, error)) }),
    ...(warnings === undefined
      ? {}
      : { warnings: warnings.map((warning) => ({ ...warning, message: redact(warning.message) })) }),
  }))
}

async function withoutSecretsOf(deps: ReportDeps, environmentId: string, key: LeaseKey, error: RunError) {
  const { integratedAccountId } = await getActiveLease(deps, environmentId, key)
  return redactError(await deps.redactor(environmentId, integratedAccountId), error)
}

function redactError(redact: (text: string) => string, { parent, element, request, ...error }: RunError): RunError {
  const { id, path = '' } = parent ?? {}
  const shownParent = parent && { ...parent, ...(id === undefined ? {} : { id: redact(id) }), path: redact(path) }
  return {
    ...error,
    message: redact(error.message),
    ...(shownParent === undefined ? {} : { parent: shownParent }),
    ...(element === undefined ? {} : { element: redact(element) }),
    ...(request === undefined ? {} : { request: redact(request) }),
  }
}

/**
 * The lease, if it is one of the environment. It may be lost right afterwards: every later write names it too.
 *
 * @throws Failure RESOURCE_NOT_FOUND, LEASE_LOST
 */
async function getActiveLease({ database }: ReportDeps, environmentId: string, key: LeaseKey): Promise<ActiveLease> {
  const [lease] = await findActiveLeases(database.pool, environmentId, [key])
  if (lease !== undefined) return lease
  if ((await findRun(database.pool, environmentId, key.id)) === undefined) throw notFound('sync_job_run', key.id)
  throw leaseLost(key.id)
}
