import type { LoggedContent } from '../../engine/proxy/index.ts'
import { catchFailure, Failure, notFound } from '../../foundation/base/index.ts'
import { type Db, type ListPage, type ListPageRequest, listQuery, pageById } from '../../foundation/database/index.ts'
import type { SecretStore } from '../../foundation/secrets/index.ts'
import { unsealContent } from './content.ts'
import { type CallLogFilter, findLogEntry, type LogEntryRecord, listLogEntryRecords } from './sql.ts'

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
