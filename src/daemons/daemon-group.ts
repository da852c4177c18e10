import { daemonQueueGroup, QUEUE_POLICY } from '../queue/index.ts'
import {
  type DaemonGroupRecord,
  decodePageToken,
  type ListPage,
  type ListPageRequest,
  selectDaemonGroups as listGroupRecords,
  readPageSize,
  type Tx,
  toPage,
} from '../storage/index.ts'

/** The daemons that share the runs of one key, and how these stand. */
export type DaemonGroup = DaemonGroupRecord

/** A page of groups that have daemons, or runs that wait or run, by key. @throws Failure PAGE_TOKEN_INVALID */
export async function listDaemonGroups(
  tx: Tx,
  environmentId: string,
  request: ListPageRequest,
): Promise<ListPage<DaemonGroup>> {
  const query = { list: 'daemon_group', environment_id: environmentId }
  const size = readPageSize(request)
  const [after] = decodePageToken(query, request.pageToken, ['text']) ?? []
  const prefix = daemonQueueGroup(environmentId, '')
  const found = await listGroupRecords(tx, environmentId, prefix, QUEUE_POLICY.leaseMs, after?.toString(), size + 1)
  return toPage(query, found, size, ({ groupKey }) => [groupKey])
}
