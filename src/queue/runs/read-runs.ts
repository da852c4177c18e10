import { notFound } from '../../base/index.ts'
import {
  decodePageToken,
  findRun,
  type ListPage,
  type ListPageRequest,
  listRuns as listRunRecords,
  type RunFilter,
  type RunRecord,
  readPageSize,
  type Tx,
  toPage,
} from '../../storage/index.ts'
import { type RunView, withWaitState, withWaitStates } from './run-waiting.ts'

/**
 * A run, and what it waits for.
 *
 * @param now moves the database's clock, for tests
 * @throws Failure RESOURCE_NOT_FOUND
 */
export async function getRun(
  tx: Tx,
  environmentId: string,
  id: string,
  now: Date | null = null,
): Promise<RunView<RunRecord>> {
  return await withWaitState(tx, await getRunRecord(tx, environmentId, id), now)
}

/** The run as it is stored. @throws Failure RESOURCE_NOT_FOUND */
export async function getRunRecord(tx: Tx, environmentId: string, id: string): Promise<RunRecord> {
  const run = await findRun(tx, environmentId, id)
  if (run === undefined) throw notFound('sync_job_run', id)
  return run
}

/** A page of runs and what they wait for, newest tick first; filters combine with and. @throws Failure PAGE_TOKEN_INVALID */
export async function listRuns(
  tx: Tx,
  environmentId: string,
  filter: RunFilter,
  request: ListPageRequest,
): Promise<ListPage<RunView>> {
  const query = { list: 'sync_job_run', environment_id: environmentId, ...definedFilters(filter) }
  const size = readPageSize(request)
  const cursor = decodePageToken(query, request.pageToken, ['time', 'uuid'])
  const below = cursor && { scheduledFor: new Date(Number(cursor[0])), id: String(cursor[1]) }
  const found = await listRunRecords(tx, environmentId, filter, below, size + 1)
  const page = toPage(query, found, size, ({ scheduledFor, id }) => [scheduledFor.getTime(), id])
  return { ...page, items: await withWaitStates(tx, page.items) }
}

/** The filters that are set: an absent one and one that is undefined are the same query. */
function definedFilters(filter: RunFilter): Record<string, string> {
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined))
}
