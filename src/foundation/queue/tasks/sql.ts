import { newestFirst } from '../../database/crud.ts'
import { type Db, execute, jsonb, query, queryOne, type Tx } from '../../database/database.ts'
import type { Json, JsonObject } from '../../json/json.ts'

/** `queued` before the first step; the last three are final. */
export const TASK_STATES = ['queued', 'running', 'completed', 'failed', 'cancelled'] as const
export type TaskState = (typeof TASK_STATES)[number]

const DELETION_PREFIX = 'delete_'
/** Regular expression of the kinds that go on until they are done: no caller cancels them, and no failure ends them. */
const LASTING_KINDS = `^(${DELETION_PREFIX}|reauthorize_)`

/** Whether a task goes on until it is done: what it does has begun to hold with the call that started it. */
export function isLasting({ kind }: Pick<TaskRecord, 'kind'>): boolean {
  return new RegExp(LASTING_KINDS).test(kind)
}

/** A background task as stored. */
export interface TaskRecord {
  readonly id: string
  readonly environmentId: string
  readonly kind: string
  /** What was asked for, in the names of the contract. */
  readonly params: JsonObject
  readonly state: TaskState
  /** Items looked at. */
  readonly done: number
  /** Items to look at; null when that is not known. */
  readonly total: number | null
  /** Where the next step begins, in a shape of the kind's own; null before the first step. */
  readonly cursor: Json
  /** Counts by name. */
  readonly result: Readonly<Record<string, number>>
  /** Why it failed, or why its last step did. */
  readonly error: string | null
  /** Failed steps in a row. */
  readonly failures: number
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly startedAt: Date | null
  readonly finishedAt: Date | null
}

/** A task to be stored. */
export type NewTask = Pick<TaskRecord, 'id' | 'environmentId' | 'kind' | 'params'>

/** A task after a step. */
export interface TaskProgress {
  readonly state: 'running' | 'completed'
  readonly done: number
  readonly total: number | null
  readonly cursor: Json
  readonly result: Readonly<Record<string, number>>
}

const COLUMNS = `id, environment_id, kind, params, state, done, total, cursor, result, error, failures, created_at, updated_at,
  started_at, finished_at`

/** Stores a task that is due at once. */
export async function insertTask(tx: Db, { id, environmentId, kind, params }: NewTask): Promise<TaskRecord> {
  const row = { id, environment_id: environmentId, kind, params: jsonb(params) }
  const [inserted] = await tx('task').insert(row).returning(tx.raw(COLUMNS))
  return inserted
}

/** Uses the primary key. */
export async function findTask(tx: Db, environmentId: string, id: string): Promise<TaskRecord | undefined> {
  return await tx('task').where({ environment_id: environmentId, id }).first(tx.raw(COLUMNS))
}

/** At most `limit` tasks below the id `before`, newest first. Uses the primary key, or task_of_state. */
export async function listTaskRecords(
  tx: Db,
  environmentId: string,
  state: TaskState | undefined,
  page: { readonly before: string | undefined; readonly limit: number },
): Promise<readonly TaskRecord[]> {
  const tasks = tx('task').where({ environment_id: environmentId })
  if (state !== undefined) tasks.where({ state })
  return await tasks.modify(newestFirst, page).select(tx.raw(COLUMNS))
}

/** How many tasks of the environment have not ended. Uses task_unfinished. */
export async function countUnfinishedTasks(tx: Db, environmentId: string): Promise<number> {
  const sql = 'select count(*) as count from task where environment_id = :environmentId and due_at is not null'
  return (await queryOne<{ readonly count: number }>(tx, sql, { environmentId }))?.count ?? 0
}

/**
 * Locks the task of these kinds that is due for the longest, passing over those that other processes lock; the lock ends with
 * the transaction. Uses task_due.
 */
export async function lockDueTask(tx: Tx, kinds: readonly string[]): Promise<TaskRecord | undefined> {
  const found = await query<TaskRecord>(
    tx,
    `select ${COLUMNS} from task where due_at <= now() and kind = any(:kinds) order by due_at limit 1 for update skip locked`,
    { kinds },
  )
  return found[0]
}

/** Stores a task that the transaction has locked after a step. It is due again behind all others. */
export async function updateTaskProgress(
  tx: Db,
  { environmentId, id }: Pick<TaskRecord, 'environmentId' | 'id'>,
  { state, done, total, cursor, result }: TaskProgress,
): Promise<void> {
  await execute(
    tx,
    `update task set state = :state, done = :done, total = :total, cursor = :cursor::jsonb, result = :result::jsonb,
       error = null, failures = 0, updated_at = now(), started_at = coalesce(started_at, now()),
       due_at = case when :isOver then null else date_trunc('milliseconds', now()) end, finished_at = case when :isOver then now() end
     where environment_id = :environmentId and id = :id`,
    {
      environmentId,
      id,
      state,
      done,
      total,
      cursor: jsonb(cursor),
      result: jsonb(result),
      isOver: state !== 'running',
    },
  )
}

/**
 * Records a failed step, unless other steps came between; the task is due again after `delayMs`.
 *
 * @param delayMs undefined: the task has failed
 */
export async function updateTaskFailure(
  tx: Db,
  { environmentId, id, failures, done }: TaskRecord,
  error: string,
  delayMs: number | undefined,
): Promise<void> {
  await execute(
    tx,
    `update task set error = :error, failures = failures + 1, updated_at = now(),
       state = case when :delayMs::double precision is null then 'failed' else state end,
       finished_at = case when :delayMs::double precision is null then now() end,
       due_at = now() + make_interval(secs => :delayMs::double precision / 1000.0)
     where environment_id = :environmentId and id = :id and failures = :failures and done = :done and due_at is not null`,
    { environmentId, id, failures, done, error, delayMs: delayMs ?? null },
  )
}

/** Ends a task that has not ended and is not lasting, after the step that locks it. */
export async function updateTaskCancelled(tx: Db, environmentId: string, id: string): Promise<void> {
  await tx('task')
    .where({ environment_id: environmentId, id })
    .whereNotNull('due_at')
    .andWhere('kind', '!~', LASTING_KINDS)
    .update({ state: 'cancelled', due_at: null, updated_at: tx.fn.now(), finished_at: tx.fn.now() })
}

/** Deletes tasks that ended longer ago than that, at most `limit`; returns how many. Uses task_finished. */
export async function deleteEndedTasks(tx: Db, keepMs: number, limit: number): Promise<number> {
  return await execute(
    tx,
    `delete from task where (environment_id, id) in (
       select environment_id, id from task where finished_at < now() - make_interval(secs => :keepMs / 1000.0) limit :limit)`,
    { keepMs, limit },
  )
}

/** Cancels what deleted environments have under way, but for deletions. Uses task_unfinished. */
export async function cancelTasksOfEnvironments(tx: Db, environmentIds: readonly string[]): Promise<void> {
  await execute(
    tx,
    `update task set state = 'cancelled', due_at = null, updated_at = now(), finished_at = now()
     where environment_id = any(:environmentIds) and due_at is not null and kind not like '${DELETION_PREFIX}%'`,
    { environmentIds },
  )
}

/** Deletes the tasks of a deleted environment; the one that deletes it is the service's, and stays until its retention ends. */
export async function deleteTasksOfEnvironment(tx: Db, environmentId: string): Promise<void> {
  const sql = "delete from task where environment_id = :environmentId and kind <> 'delete_environment'"
  await execute(tx, sql, { environmentId })
}
