import { Failure, notFound } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import type { Db, Tx } from '../../database/database.ts'
import { type ListPage, type ListPageRequest, listQuery, pageById } from '../../database/keyset-pages.ts'
import {
  countUnfinishedTasks,
  findTask,
  insertTask,
  listTaskRecords,
  type NewTask,
  type TaskRecord,
  type TaskState,
  updateTaskCancelled,
} from './sql.ts'

/** Tasks of an environment that have not ended; more are rejected, because each takes its turn with all others. */
const UNFINISHED_MAX = 20
const RETRY_AFTER_SECONDS = 30

/**
 * Starts a background task; a worker takes it up after the commit.
 *
 * @throws Failure RATE_LIMITED when UNFINISHED_MAX tasks of the environment have not ended
 */
export async function startTask(tx: Tx, task: Omit<NewTask, 'id'>): Promise<TaskRecord> {
  if ((await countUnfinishedTasks(tx, task.environmentId)) >= UNFINISHED_MAX) {
    const message = `${UNFINISHED_MAX} tasks of the environment have not ended: wait for one, or cancel it`
    throw new Failure('RATE_LIMITED', message, { retryAfterSeconds: RETRY_AFTER_SECONDS })
  }
  return await insertTask(tx, { ...task, id: newId() })
}

/**
 * Starts a task of the service itself, which no environment lists.
 *
 * @param task.ownerId the id of what the task deletes
 */
export async function startServiceTask(
  tx: Db,
  { ownerId, ...task }: Omit<NewTask, 'id' | 'environmentId'> & { readonly ownerId: string },
): Promise<void> {
  await insertTask(tx, { ...task, environmentId: ownerId, id: newId() })
}

/** @throws Failure RESOURCE_NOT_FOUND */
export async function getTask(tx: Db, environmentId: string, id: string): Promise<TaskRecord> {
  const task = await findTask(tx, environmentId, id)
  if (task === undefined) throw notFound('task', id)
  return task
}

/** A page of tasks, newest first. @throws Failure PAGE_TOKEN_INVALID */
export async function listTasks(
  tx: Db,
  environmentId: string,
  state: TaskState | undefined,
  request: ListPageRequest,
): Promise<ListPage<TaskRecord>> {
  const query = listQuery('task', environmentId, { state })
  return await pageById(query, request, (range) => listTaskRecords(tx, environmentId, state, range))
}

/**
 * Cancels a task: waits for the step that is under way, after which nothing more happens. A task that has ended, or is lasting, stays as it is.
 *
 * @throws Failure RESOURCE_NOT_FOUND
 */
export async function cancelTask(tx: Db, environmentId: string, id: string): Promise<TaskRecord> {
  await updateTaskCancelled(tx, environmentId, id)
  return await getTask(tx, environmentId, id)
}
