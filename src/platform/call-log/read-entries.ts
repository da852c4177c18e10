import type { LoggedContent } from '../../engine/proxy/index.ts'
import { catchFailure, Failure, notFound } from '../../foundation/base/index.ts'
import {
  type Db,
  decodePageToken,
  encodePageToken,
  type ListPage,
  type ListPageRequest,
  listQuery,
  pageById,
  readPageSize,
  toPage,
} from '../../foundation/database/index.ts'
import type { SecretStore } from '../../foundation/secrets/index.ts'
import { unsealContent } from './content.ts'
import { type CallLogFilter, findLogEntry, findScanEnd, type LogEntryRecord, listLogEntryRecords } from './sql.ts'

export type { CallLogFilter }

/** An entry with its headers and bodies. */
export interface WholeLogEntry extends LogEntryRecord {
  /** Absent where they are not kept, or cannot be decrypted. */
  readonly content: LoggedContent | undefined
  /** Why kept ones cannot be decrypted. */
  readonly contentError: string | undefined
}

/** An entry with its headers and bodies; it is there also when they cannot be decrypted. @throws Failure RESOURCE_NOT_FOUND */
export async function getLogEntry(
  secrets: Pick<SecretStore, 'decryptFor'>,
  tx: Db,
  environmentId: string,
  id: string,
): Promise<WholeLogEntry> {
  const found = await findLogEntry(tx, environmentId, id)
  if (found === undefined) throw notFound('call_log_entry', id)
  const { content: sealed, ...entry } = found
  if (sealed === null) return { ...entry, content: undefined, contentError: undefined }
  const content = await catchFailure(() => unsealContent(secrets, tx, { ...entry, content: sealed }))
  if (!(content instanceof Failure)) return { ...entry, content, contentError: undefined }
  if (content.reason !== 'SECRET_UNREADABLE') throw content
  return { ...entry, content: undefined, contentError: content.publicMessage }
}

/**
 * A page of entries, newest first, without headers and bodies; filters combine with and. One by text reads SCAN_ROWS_MAX entries for a
 * page, which may then be short or empty and not the last.
 *
 * @throws Failure PAGE_TOKEN_INVALID
 */
export async function listLogEntries(
  tx: Db,
  environmentId: string,
  filter: CallLogFilter,
  request: ListPageRequest,
): Promise<ListPage<LogEntryRecord>> {
  const query = listQuery('call_log_entry', environmentId, filter)
  if (filter.pathContains === undefined)
    return await pageById(query, request, (range) => listLogEntryRecords(tx, environmentId, filter, range))
  const size = readPageSize(request)
  const [token] = decodePageToken(query, request.pageToken) ?? []
  const before = token === undefined ? undefined : String(token)
  const from = await findScanEnd(tx, environmentId, filter, 'desc', before)
  const found = await listLogEntryRecords(tx, environmentId, filter, { before, from, limit: size + 1 })
  const page = toPage(query, found, size, ({ id }) => [id])
  return page.nextPageToken !== '' || from === undefined
    ? page
    : { ...page, nextPageToken: encodePageToken(query, [from]) }
}
