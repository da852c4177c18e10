import { notFound } from '../../base/index.ts'
import {
  decodePageToken,
  findRun,
  listRuns as listRunRecords,
  type Page,
  type PageRequest,
  pageOf,
  pageSizeOf,
  type RunFilter,
  type RunRecord,
  type Tx,
} from '../../storage/index.ts'
import { type ShownRun, withItsWaiting, withWaiting } from './run-waiting.ts'

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
): Promise<ShownRun<RunRecord>> {
  return await withItsWaiting(tx, await requireRun(tx, environmentId, id), now)
}

/** The run as it is stored. @throws Failure RESOURCE_NOT_FOUND */
export async function requireRun(tx: Tx, environmentId: string, id: string): Promise<RunRecord> {
  const run = await findRun(tx, environmentId, id)
  if (run === undefined) throw notFound('sync_job_run', id)
  return run
}

/** A page of runs and what they wait for, newest tick first; filters combine with and. @throws Failure PAGE_TOKEN_INVALID */
export async function listRuns(
  tx: Tx,
  environmentId: string,
  filter: RunFilter,
  request: PageRequest,
): Promise<Page<ShownRun>> {
  const query = { list: 'sync_job_run', environment_id: environmentId, ...givenOf(filter) }
  const size = pageSizeOf(request)
  const cursor = decodePageToken(query, request.pageToken, ['time', 'uuid'])
  const below = cursor && { scheduledFor: new Date(Number(cursor[0])), id: String(cursor[1]) }
  const found = await listRunRecords(tx, environmentId, filter, below, size + 1)
  const page = pageOf(query, found, size, ({ scheduledFor, id }) => [scheduledFor.getTime(), id])
  return { ...page, items: await withWaiting(tx, page.items) }
}

/** The filters that are set: an absent one and one that is undefined are the same query. */
function givenOf(filter: RunFilter): Record<string, string> {
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined))
}
