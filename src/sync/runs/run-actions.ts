import { Failure, newId } from '../../foundation/base/index.ts'
import type { Db, Tx } from '../../foundation/database/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import { getRunRecord, type RunView, withWaitState } from './read-runs.ts'
import {
  type ErrorHandling,
  isFinalStatus,
  QUEUE_DEPTH_MAX,
  queueGroupOf,
  type Run,
  type RunDestination,
} from './run.ts'
import { recordRunEvents } from './run-events.ts'
import { STATUS_EVENTS } from './run-payload.ts'
import { queueGroupKey, type RunQueue } from './run-queue.ts'
import { assertRunnable, destinationRequired, loadRunReferences, type RunReferences } from './run-targets.ts'
import {
  insertManualRun,
  markStopped,
  type NewRun,
  type RunRecord,
  requeueRun,
  updateLastRunStatus,
} from './sql/run.ts'
import { requestStop } from './sql/run-queue.ts'
import { findAccountState } from './sql/run-targets.ts'

/** What retrying a run needs. */
export interface RunActionDeps {
  readonly queue: Pick<RunQueue, 'enqueue' | 'countWaiting'>
}

/** Checks of what a run is created with. */
export interface RunChecks {
  /**
   * The arguments with the schema's defaults filled in.
   *
   * @throws Failure ARGS_INVALID
   */
  resolveArgs(rules: RunReferences['argsRules'], given: JsonObject): Promise<JsonObject>
  /**
   * Checks that the account can be asked for the resources.
   *
   * @throws Failure RESOURCES_INVALID when it has no mapping for a unified resource
   */
  assertMapped(tx: Db, account: RunAccount, resources: readonly JsonObject[]): Promise<void>
}

/** The account of a run, and its integration. */
interface RunAccount {
  readonly environmentId: string
  readonly integratedAccountId: string
  readonly integrationName: string
}

/** What creating a run needs. */
export interface CreateRunDeps extends RunActionDeps, RunChecks {}

/** A run to be created. */
export interface RunInput {
  readonly syncJobId: string
  readonly integratedAccountId: string
  readonly args?: JsonObject | undefined
  readonly destination: RunDestination | undefined
  /** Absent: the job's. */
  readonly errorHandling?: ErrorHandling | undefined
  readonly ignorePreviousRun?: boolean | undefined
}

/**
 * Creates a run of a job for an account, to be executed as soon as possible. Needs a transaction.
 *
 * @throws Failure RESOURCE_NOT_FOUND, ACCOUNT_NOT_ACTIVE, INTEGRATION_DISABLED, DESTINATION_REQUIRED, WEBHOOK_NOT_FOUND,
 * INVALID_FIELD, RESOURCES_INVALID, ARGS_INVALID, GROUP_FULL; nothing is stored then
 */
export async function createRun(deps: CreateRunDeps, tx: Tx, environmentId: string, input: RunInput): Promise<RunView> {
  const { syncJobId, integratedAccountId, destination } = input
  if (destination === undefined) throw destinationRequired()
  const references = await loadRunReferences(tx, environmentId, { syncJobId, integratedAccountId, destination })
  assertRunnable(references)
  const { integrationName, jobResources } = references
  await deps.assertMapped(tx, { environmentId, integratedAccountId, integrationName }, jobResources)
  const args = await deps.resolveArgs(references.argsRules, input.args ?? {})
  return await enqueueNewRun(deps, tx, {
    environmentId,
    syncJobId,
    integratedAccountId,
    destination,
    args,
    triggerId: null,
    region: references.region,
    resources: jobResources,
    errorHandling: input.errorHandling ?? references.jobErrorHandling,
    ignorePreviousRun: input.ignorePreviousRun ?? false,
  })
}

/** Stores a manual run and puts it into the queue. Needs a transaction. @throws Failure GROUP_FULL */
export async function enqueueNewRun(deps: RunActionDeps, tx: Tx, input: Omit<NewRun, 'id'>): Promise<RunView> {
  await assertCapacity(deps, tx, input.environmentId, input.destination)
  const run = await insertManualRun(tx, { ...input, id: newId() })
  await deps.queue.enqueue(tx, [run])
  await recordRunEvents(tx, [{ ...run, type: 'sync_job_run:created' }])
  return await withWaitState(tx, run)
}

/** @throws Failure GROUP_FULL when QUEUE_DEPTH_MAX runs wait in the destination's queue group already */
async function assertCapacity(
  deps: RunActionDeps,
  tx: Db,
  environmentId: string,
  destination: RunDestination,
): Promise<void> {
  const group = queueGroupOf(environmentId, destination)
  const depths = await deps.queue.countWaiting(tx, [{ environmentId, group }])
  if ((depths.get(queueGroupKey(environmentId, group)) ?? 0) < QUEUE_DEPTH_MAX) return
  const message = `${QUEUE_DEPTH_MAX} runs wait already for this kind of destination; try again later`
  throw new Failure('GROUP_FULL', message, { retryAfterSeconds: 60 })
}

/** A run is neither in the queue nor leased only while a claim commits. */
const STOP_ATTEMPTS_MAX = 5

/**
 * Stops a run: a waiting one immediately; a running one is asked to end at its next page, and loses its lease a minute later.
 * Stopping a stopped run changes nothing. Needs a transaction.
 *
 * @throws Failure RESOURCE_NOT_FOUND, RUN_STATE_CONFLICT when it completed (partially), failed or was skipped
 */
export async function stopRun(tx: Tx, environmentId: string, id: string): Promise<Run> {
  for (let attempt = 1; attempt <= STOP_ATTEMPTS_MAX; attempt++) {
    const found = await requestStop(tx, environmentId, id)
    if (found !== undefined && found.scheduledFor !== null) {
      await markStopped(tx, id, found.scheduledFor)
      await recordRunEvents(tx, [{ id, scheduledFor: found.scheduledFor, type: STATUS_EVENTS.stopped }])
      if (found.triggerId !== null) await updateLastRunStatus(tx, found.triggerId, id, 'stopped')
      return await getRunRecord(tx, environmentId, id)
    }
    const run = await getRunRecord(tx, environmentId, id)
    if (found?.isHeld || run.status === 'stopped') return run
    if (isFinalStatus(run.status)) throw stateConflict(run, 'it is over and cannot be stopped')
  }
  throw new Failure('RUN_STATE_CONFLICT', `run ${id} is changing right now; try again`, { retryAfterSeconds: 1 })
}

/** What to do instead of a retry, by the status of the run. */
const RETRY_ADVICE: Readonly<Partial<Record<RunRecord['status'], string>>> = {
  completed: 'it has read everything; start another run to read again',
  partially_completed:
    'only failed and stopped runs are retried; the next run of the job for the account reads again what it passed over: start one, or wait for its trigger',
  skipped: 'nothing was read; start a run instead',
}

/**
 * Queues a failed or stopped run again, from its last checkpoint and with a full set of attempts. Needs a transaction.
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
  const again = await requeueRun(tx, run)
  if (again === undefined)
    throw stateConflict(run, RETRY_ADVICE[run.status] ?? 'only failed and stopped runs are retried')
  await deps.queue.enqueue(tx, [again])
  await recordRunEvents(tx, [{ ...again, type: STATUS_EVENTS.created }])
  if (again.triggerId !== null) await updateLastRunStatus(tx, again.triggerId, id, 'created')
  return await withWaitState(tx, again)
}

function stateConflict(run: RunRecord, because: string): Failure {
  return new Failure('RUN_STATE_CONFLICT', `run ${run.id} is ${run.status}: ${because}`, {
    metadata: { status: run.status },
    resource: { type: 'sync_job_run', id: run.id },
  })
}
