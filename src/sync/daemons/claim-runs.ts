import { detachFromRequest, Failure } from '../../foundation/base/index.ts'
import { isDatabaseUnavailable } from '../../foundation/database/index.ts'
import type { Lease } from '../../foundation/queue/index.ts'
import { LEASE_EXPIRED, type Outcome } from '../../foundation/queue/index.ts'
import { startFailureOutcome } from '../jobs/page-outcome.ts'
import { daemonQueueGroup, type QueuedRun, type Run } from '../runs/run.ts'
import { findRuns } from '../runs/sql/run.ts'
import { type Assignment, createAssignment, findRecordSchemas } from './assignment.ts'
import { type DaemonsDeps, markDaemonSeen } from './daemon.ts'
import type { ActiveDaemon } from './sql.ts'

/** A claim of a daemon. */
export interface ClaimRequest {
  readonly daemonId: string
  readonly capacity: number
  readonly waitMs: number
}

type ClaimDeps = Pick<DaemonsDeps, 'database' | 'queue' | 'longPolls' | 'loadAccount' | 'mappings' | 'onDefect'>

const ASSIGNMENT_FAILED: Outcome = {
  kind: 'retry',
  error: { reason: 'INTERNAL', message: 'the run could not be assigned to a daemon' },
}

/**
 * Claims runs of the daemon's group and regions by long poll: waits for the first when there is none. A run whose account
 * may not be called is settled here. When the caller disconnects, runs claimed for it are released.
 *
 * @returns no runs after the wait, and at once when the daemon drains or this process shuts down
 * @throws Failure RESOURCE_NOT_FOUND for an unknown daemon, RATE_LIMITED when too many wait
 */
export async function claimRuns(
  deps: ClaimDeps,
  environmentId: string,
  { daemonId, capacity, waitMs }: ClaimRequest,
  signal: AbortSignal,
): Promise<readonly Assignment[]> {
  for (const endMs = performance.now() + waitMs; ; ) {
    const daemon = await markDaemonSeen(deps.database.pool, environmentId, daemonId)
    if (daemon.isDraining || deps.longPolls.isClosed) return []
    const group = daemonQueueGroup(environmentId, daemon.groupKey)
    const runs = await claimOnce(deps, daemon, group, capacity, signal)
    const remainingMs = endMs - performance.now()
    if (runs.length > 0 || remainingMs <= 0) return runs
    if (!(await deps.longPolls.wait({ environmentId, daemonId, group, regions: daemon.regions }, remainingMs, signal)))
      return []
  }
}

async function claimOnce(
  deps: ClaimDeps,
  { id: holder, regions }: ActiveDaemon,
  group: string,
  limit: number,
  signal: AbortSignal,
): Promise<readonly Assignment[]> {
  if (signal.aborted) return []
  const claim = { group, holder, limit, regions: regions.length === 0 ? undefined : regions }
  const claimed = await deps.queue.claim(claim)
  // What was claimed is given to the caller, or given back after its request has ended.
  return claimed.length === 0 ? [] : await detachFromRequest(() => assign(deps, claimed, signal))
}

async function assign(
  deps: ClaimDeps,
  claimed: readonly Lease<QueuedRun>[],
  signal: AbortSignal,
): Promise<readonly Assignment[]> {
  const runs = new Map((await findRuns(deps.database.pool, claimed)).map((run) => [run.id, run]))
  const assigned: { readonly lease: Lease<QueuedRun>; readonly assignment: Assignment }[] = []
  const ended: { readonly lease: Lease<QueuedRun>; readonly outcome: Outcome }[] = []
  for (const lease of claimed) {
    const run = runs.get(lease.id)
    if (run === undefined) continue
    const assigning = await assignOrOutcome(deps, lease, run)
    if ('kind' in assigning) ended.push({ lease, outcome: assigning })
    else assigned.push({ lease, assignment: assigning })
  }
  if (signal.aborted)
    ended.push(...assigned.splice(0).map(({ lease }) => ({ lease, outcome: { kind: 'released' } as const })))
  await deps.queue.settle(ended.map(({ lease, outcome }) => ({ ...lease, outcome })))
  return assigned.map(({ assignment }) => assignment)
}

/** The assignment, or the outcome of a run that cannot be assigned. @throws while the database is unavailable: then the leases expire */
async function assignOrOutcome(deps: ClaimDeps, lease: Lease<QueuedRun>, run: Run): Promise<Assignment | Outcome> {
  if (lease.attemptsExhausted) return { kind: 'failed', error: LEASE_EXPIRED }
  try {
    const account = await deps.loadAccount(lease.environmentId, lease.integratedAccountId)
    return createAssignment(
      lease,
      run,
      account,
      await findRecordSchemas(deps.mappings, deps.database.pool, run, account),
    )
  } catch (error) {
    if (error instanceof Failure) return startFailureOutcome(error)
    if (isDatabaseUnavailable(error)) throw error
    deps.onDefect(error, lease.id)
    return ASSIGNMENT_FAILED
  }
}
