import {
  type Db,
  decodePageToken,
  type ListPage,
  type ListPageRequest,
  listQuery,
  readPageSize,
  toPage,
} from '../../foundation/database/index.ts'
import { type CallHourCursor, type CallHourFilter, listCallHours, NO_INSTALLATION, type StoredCallHour } from './sql.ts'

/** Requests of one hour, installation and class. */
export interface CallHourRecord {
  /** Its first moment. */
  readonly hour: Date
  /** Undefined: sent for none. */
  readonly environmentIntegrationId: string | undefined
  readonly class: string
  readonly count: number
  /** How many took up to each of DURATION_BOUNDS_MS, and longer than the last. */
  readonly durationCounts: readonly number[]
}

/** A page of the hours of an environment, newest first; filters combine with and. @throws Failure PAGE_TOKEN_INVALID */
export async function listActivity(
  tx: Db,
  environmentId: string,
  filter: CallHourFilter,
  request: ListPageRequest,
): Promise<ListPage<CallHourRecord>> {
  const query = listQuery('call_hour', environmentId, filter)
  const size = readPageSize(request)
  const below = decodeCursor(decodePageToken(query, request.pageToken, ['time', 'uuid', 'text']))
  const found = await listCallHours(tx, environmentId, filter, { below, limit: size + 1 })
  const { items, nextPageToken } = toPage(query, found, size, (row) => [
    row.hour.getTime(),
    row.environmentIntegrationId,
    row.class,
  ])
  return { items: items.map(recordFromRow), nextPageToken }
}

function decodeCursor(values: readonly (string | number)[] | undefined): CallHourCursor | undefined {
  if (values === undefined) return undefined
  const [hour = 0, environmentIntegrationId, ofClass] = values
  return {
    hour: new Date(hour),
    environmentIntegrationId: String(environmentIntegrationId),
    class: String(ofClass),
  }
}

function recordFromRow({ hour, environmentIntegrationId, class: ofClass, counts }: StoredCallHour): CallHourRecord {
  return {
    hour,
    environmentIntegrationId: environmentIntegrationId === NO_INSTALLATION ? undefined : environmentIntegrationId,
    class: ofClass,
    count: counts.reduce((sum, count) => sum + count, 0),
    durationCounts: counts,
  }
}
