import { type BackoffPolicy, backoffMs, type Random } from '../../base/backoff.ts'
import { Failure } from '../../base/errors.ts'
import type { PollLoopSpec } from '../../base/poll-loop.ts'
import type { Database, Tx } from '../../database/database.ts'
import { isDatabaseUnavailable } from '../../database/errors.ts'
import type { Json } from '../../json/json.ts'
import { describeError, type Logger } from '../../telemetry/logger.ts'
import {
  deleteEndedTasks,
  isLasting,
  lockDueTask,
  type TaskRecord,
  updateTaskFailure,
  updateTaskProgress,
} from './sql.ts'

/** What a step of a task did. */
export interface TaskStep {
  /** Items that it looked at. */
  readonly done: number
  /** Items of the whole task, when the step counted them. */
  readonly total?: number | undefined
  /** Where the next step begins; null: there is nothing more to do. */
  readonly cursor: Json
  /** Added to the counts of the result. */
  readonly counts?: Readonly<Record<string, number>>
}

/** A kind of background task. */
export interface TaskKind {
  /** Its name in the contract. */
  readonly kind: string
  /**
   * One step, from `task.cursor` on. What it does is committed together with its progress, so it is done once; it takes a second
   * at most, because a call that cancels the task waits for it.
   *
   * @throws Failure that fails the task; other errors are tried again
   */
  step(tx: Tx, task: TaskRecord): Promise<TaskStep>
}

/** What running tasks takes. */
export interface TaskRunnerDeps {
  readonly database: Database
  readonly random: Random
  readonly logger: Pick<Logger, 'error'>
}

const POLL_MS = 500
const FAILURES_MAX = 8
const RETRY_BACKOFF: BackoffPolicy = { baseMs: 500, factor: 2, maxMs: 60_000, jitterFloor: 0.5 }

/**
 * The loop that takes tasks step by step, each task in turn with all others. Processes share the tasks by row locks: the lock
 * is the lease, and it ends with the transaction of the step or with the process.
 *
 * @param kinds tasks of other kinds wait for a process that knows them
 */
export function createTaskRunner(deps: TaskRunnerDeps, kinds: readonly TaskKind[]): PollLoopSpec {
  const byName = new Map(kinds.map((kind) => [kind.kind, kind]))
  return { name: 'tasks', intervalMs: POLL_MS, runOnce: () => runStep(deps, byName) }
}

/** @returns whether there was a task */
async function runStep(deps: TaskRunnerDeps, kinds: ReadonlyMap<string, TaskKind>): Promise<boolean> {
  let task: TaskRecord | undefined
  try {
    return await deps.database.transaction(async (tx) => {
      task = await lockDueTask(tx, [...kinds.keys()])
      if (task === undefined) return false
      const step = await kinds.get(task.kind)?.step(tx, task)
      if (step !== undefined) await updateTaskProgress(tx, task, afterStep(task, step))
      return true
    })
  } catch (error) {
    if (task === undefined || isDatabaseUnavailable(error)) throw error
    await recordFailure(deps, task, error)
    return true
  }
}

function afterStep(task: TaskRecord, { done, total, cursor, counts = {} }: TaskStep) {
  const added = Object.entries(counts).map(([name, count]) => [name, (task.result[name] ?? 0) + count] as const)
  return {
    state: cursor === null ? ('completed' as const) : ('running' as const),
    done: task.done + done,
    total: total ?? task.total,
    cursor,
    result: { ...task.result, ...Object.fromEntries(added) },
  }
}

async function recordFailure(deps: TaskRunnerDeps, task: TaskRecord, error: unknown): Promise<void> {
  const failures = task.failures + 1
  const isFinal = !isLasting(task) && (error instanceof Failure || failures >= FAILURES_MAX)
  const message = error instanceof Failure ? error.publicMessage : 'an internal error, which is in the log'
  if (!(error instanceof Failure))
    deps.logger.error({ task: task.id, kind: task.kind, failures, ...describeError(error) }, 'a step of a task failed')
  const delayMs = isFinal ? undefined : backoffMs(RETRY_BACKOFF, failures, deps.random)
  await updateTaskFailure(deps.database.pool, task, message, delayMs)
}

const CLEAN_INTERVAL_MS = 10 * 60 * 1_000
const KEEP_MS = 30 * 24 * 60 * 60 * 1_000
const CLEAN_BATCH = 1_000

/** Deletes tasks 30 days after their end. */
export function taskCleaner({ database }: Pick<TaskRunnerDeps, 'database'>): PollLoopSpec {
  return {
    name: 'task-retention',
    intervalMs: CLEAN_INTERVAL_MS,
    runOnce: async () => (await deleteEndedTasks(database.pool, KEEP_MS, CLEAN_BATCH)) === CLEAN_BATCH,
  }
}
