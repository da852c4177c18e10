import { Failure } from '../../base/index.ts'
import {
  findAccountState,
  markStopped,
  type Run,
  type RunRecord,
  requestStop,
  requeueRun,
  type Tx,
  updateLastRunStatus,
} from '../../storage/index.ts'
import { assertCapacity, type RunActionDeps } from './create-run.ts'
import { getRunRecord } from './read-runs.ts'
import { type RunView, withWaitState } from './run-waiting.ts'
import { assertRunnable } from './subject.ts'

/** A run is between queue and lease only while a claim commits. */
const STOP_ATTEMPTS_MAX = 5

/**
 * Ends a run before it is done: one that waits is stopped at once, one that runs is asked to end at its next page and loses
 * its lease a minute later. Stopping a stopped run changes nothing. Needs a transaction.
 *
 * @throws Failure RESOURCE_NOT_FOUND, RUN_STATE_CONFLICT when it completed (partially), failed or was skipped
 */
export async function stopRun(deps: RunActionDeps, tx: Tx, environmentId: string, id: string): Promise<Run> {
  const now = deps.now?.() ?? null
  for (let attempt = 1; attempt <= STOP_ATTEMPTS_MAX; attempt++) {
    const found = await requestStop(tx, environmentId, id, now)
    if (found !== undefined && found.scheduledFor !== null) {
      await markStopped(tx, id, found.scheduledFor, now)
      if (found.triggerId !== null) await updateLastRunStatus(tx, found.triggerId, id, 'stopped')
      const run = await getRunRecord(tx, environmentId, id)
      return run
    }
    const run = await getRunRecord(tx, environmentId, id)
    if (found?.isHeld || run.status === 'stopped') return run
    if (isEndedStatus(run.status)) throw stateConflict(run, 'it is over and cannot be stopped')
  }
  throw new Failure('RUN_STATE_CONFLICT', `run ${id} is changing right now; try again`, { retryAfterSeconds: 1 })
}

/**
 * Lets a failed or stopped run go on from its last checkpoint with a full set of attempts. Needs a transaction.
 *
 * @throws Failure RESOURCE_NOT_FOUND, RUN_STATE_CONFLICT in any other status, ACCOUNT_NOT_ACTIVE, INTEGRATION_DISABLED,
 * GROUP_FULL
 */
export async function retryRun(deps: RunActionDeps, tx: Tx, environmentId: string, id: string): Promise<RunView> {
  const run = await getRunRecord(tx, environmentId, id)
  const state = await findAccountState(tx, environmentId, run.integratedAccountId)
  if (state === undefined) throw stateConflict(run, 'its account is gone')
  assertRunnable(state)
  await assertCapacity(deps, tx, environmentId, run.destination)
  const again = await requeueRun(tx, run, deps.now?.() ?? null)
  if (again === undefined) throw stateConflict(run, 'only failed and stopped runs are retried')
  await deps.queue.enqueue(tx, [again])
  if (again.triggerId !== null) await updateLastRunStatus(tx, again.triggerId, id, 'created')
  return await withWaitState(tx, again, deps.now?.())
}

function isEndedStatus(status: Run['status']): boolean {
  return ['completed', 'partially_completed', 'failed', 'skipped'].includes(status)
}

function stateConflict(run: RunRecord, because: string): Failure {
  return new Failure('RUN_STATE_CONFLICT', `run ${run.id} is ${run.status}: ${because}`, {
    metadata: { status: run.status },
    resource: { type: 'sync_job_run', id: run.id },
  })
}
