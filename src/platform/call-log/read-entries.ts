import { notFound } from '../../foundation/base/index.ts'
import { type Db, type ListPage, type ListPageRequest, listQuery, pageById } from '../../foundation/database/index.ts'
import {
  type CallLogFilter,
  findLogEntry,
  type LogEntryContent,
  type LogEntryRecord,
  listLogEntryRecords,
} from './sql.ts'

export type { CallLogFilter }

/** An entry with its headers and bodies. @throws Failure RESOURCE_NOT_FOUND */
export async function getLogEntry(
  tx: Db,
  environmentId: string,
  id: string,
): Promise<LogEntryRecord & LogEntryContent> {
  const entry = await findLogEntry(tx, environmentId, id)
  if (entry === undefined) throw notFound('call_log_entry', id)
  return entry
}

/** A page of entries, newest first, without headers and bodies; filters combine with and. @throws Failure PAGE_TOKEN_INVALID */
export async function listLogEntries(
  tx: Db,
  environmentId: string,
  filter: CallLogFilter,
  request: ListPageRequest,
): Promise<ListPage<LogEntryRecord>> {
  const query = listQuery('call_log_entry', environmentId, filter)
  return await pageById(query, request, (range) => listLogEntryRecords(tx, environmentId, filter, range))
}
