import { Failure, type JsonObject, newId } from '../../base/index.ts'
import { type ErrorHandling, insertManualRun, type NewRun, type RunDestination, type Tx } from '../../storage/index.ts'
import { QUEUE_DEPTH_MAX, queueGroupOf } from './run-group.ts'
import { queueGroupKey, type RunQueue } from './run-queue.ts'
import { type RunView, withWaitState } from './run-waiting.ts'
import { assertRunnable, destinationRequired, loadRunReferences, type RunReferences } from './subject.ts'

/** What changing runs needs. */
export interface RunActionDeps {
  readonly queue: Pick<RunQueue, 'enqueue' | 'countWaiting'>
  /** Moves the database's clock, for tests. */
  readonly now?: (() => Date) | undefined
}

/** What creating a run needs beside that. */
export interface CreateRunDeps extends RunActionDeps {
  /**
   * The arguments with the schema's defaults filled in.
   *
   * @throws Failure ARGS_INVALID
   */
  resolveArgs(rules: RunReferences['argsRules'], given: JsonObject): Promise<JsonObject>
}

/** Asks for a run. */
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
 * INVALID_FIELD, ARGS_INVALID, GROUP_FULL; nothing is stored then
 */
export async function createRun(deps: CreateRunDeps, tx: Tx, environmentId: string, input: RunInput): Promise<RunView> {
  const { syncJobId, integratedAccountId, destination } = input
  if (destination === undefined) throw destinationRequired()
  const subject = await loadRunReferences(tx, environmentId, { syncJobId, integratedAccountId, destination })
  assertRunnable(subject)
  const args = await deps.resolveArgs(subject.argsRules, input.args ?? {})
  return await enqueueNewRun(deps, tx, {
    environmentId,
    syncJobId,
    integratedAccountId,
    destination,
    args,
    triggerId: null,
    region: subject.region,
    resources: subject.jobResources,
    errorHandling: input.errorHandling ?? subject.jobErrorHandling,
    ignorePreviousRun: input.ignorePreviousRun ?? false,
  })
}

/** Stores a run by hand and lets it wait. @throws Failure GROUP_FULL */
export async function enqueueNewRun(deps: RunActionDeps, tx: Tx, input: Omit<NewRun, 'id'>): Promise<RunView> {
  await assertCapacity(deps, tx, input.environmentId, input.destination)
  const run = await insertManualRun(tx, { ...input, id: newId() }, deps.now?.() ?? null)
  await deps.queue.enqueue(tx, [run])
  return await withWaitState(tx, run, deps.now?.())
}

/** @throws Failure GROUP_FULL when GROUP_QUEUED_MAX runs wait in the destination's group already */
export async function assertCapacity(
  deps: RunActionDeps,
  tx: Tx,
  environmentId: string,
  destination: RunDestination,
): Promise<void> {
  const group = queueGroupOf(environmentId, destination)
  const waiting =
    (await deps.queue.countWaiting(tx, [{ environmentId, group }])).get(queueGroupKey(environmentId, group)) ?? 0
  if (waiting < QUEUE_DEPTH_MAX) return
  throw new Failure(
    'GROUP_FULL',
    `${QUEUE_DEPTH_MAX} runs wait already for this kind of destination; try again later`,
    {
      retryAfterSeconds: 60,
    },
  )
}
