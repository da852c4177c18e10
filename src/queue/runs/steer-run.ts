import { Failure } from '../../base/index.ts'
import {
  findAccountState,
  markCreatedAgain,
  markStopped,
  type Run,
  type RunRecord,
  requestStop,
  showRunStatus,
  type Tx,
} from '../../storage/index.ts'
import { type RunDeps, requireRoom } from './create-run.ts'
import { requireRun } from './read-runs.ts'
import { type ShownRun, withItsWaiting } from './run-waiting.ts'
import { requireRunnable } from './subject.ts'

/** A run is between queue and lease only while a claim commits. */
const STOP_ATTEMPTS_MAX = 5

/**
 * Ends a run before it is done: one that waits is stopped at once, one that runs is asked to end at its next page and loses
 * its lease a minute later. Stopping a stopped run changes nothing. Needs a transaction.
 *
 * @throws Failure RESOURCE_NOT_FOUND, RUN_STATE_CONFLICT when it completed (partially), failed or was skipped
 */
export async function stopRun(deps: RunDeps, tx: Tx, environmentId: string, id: string): Promise<Run> {
  const now = deps.now?.() ?? null
  for (let attempt = 1; attempt <= STOP_ATTEMPTS_MAX; attempt++) {
    const found = await requestStop(tx, environmentId, id, now)
    if (found !== undefined && found.scheduledFor !== null) {
      await markStopped(tx, id, found.scheduledFor, now)
      if (found.triggerId !== null) await showRunStatus(tx, found.triggerId, id, 'stopped')
      const run = await requireRun(tx, environmentId, id)
      return run
    }
    const run = await requireRun(tx, environmentId, id)
    if (found?.isHeld || run.status === 'stopped') return run
    if (isFinal(run.status)) throw stateConflict(run, 'it is over and cannot be stopped')
  }
  throw new Failure('RUN_STATE_CONFLICT', `run ${id} is changing right now; try again`, { retryAfterSeconds: 1 })
}

/**
 * Lets a failed or stopped run go on from its last checkpoint with a full set of attempts. Needs a transaction.
 *
 * @throws Failure RESOURCE_NOT_FOUND, RUN_STATE_CONFLICT in any other status, ACCOUNT_NOT_ACTIVE, INTEGRATION_DISABLED,
 * GROUP_FULL
 */
export async function retryRun(deps: RunDeps, tx: Tx, environmentId: string, id: string): Promise<ShownRun> {
  const run = await requireRun(tx, environmentId, id)
  const state = await findAccountState(tx, environmentId, run.integratedAccountId)
  if (state === undefined) throw stateConflict(run, 'its account is gone')
  requireRunnable(state)
  await requireRoom(deps, tx, environmentId, run.destination)
  const again = await markCreatedAgain(tx, run, deps.now?.() ?? null)
  if (again === undefined) throw stateConflict(run, 'only failed and stopped runs are retried')
  await deps.queue.enqueue(tx, [again])
  if (again.triggerId !== null) await showRunStatus(tx, again.triggerId, id, 'created')
  return await withItsWaiting(tx, again, deps.now?.())
}

function isFinal(status: Run['status']): boolean {
  return ['completed', 'partially_completed', 'failed', 'skipped'].includes(status)
}

function stateConflict(run: RunRecord, because: string): Failure {
  return new Failure('RUN_STATE_CONFLICT', `run ${run.id} is ${run.status}: ${because}`, {
    metadata: { status: run.status },
    resource: { type: 'sync_job_run', id: run.id },
  })
}
