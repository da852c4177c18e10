import { type Db, type ListPage, type ListPageRequest, listQuery, pageById } from '../../foundation/database/index.ts'
import { type AuditEntryRecord, type AuditFilter, listEntryRecords } from './sql/entry.ts'

/**
 * A page of the entries of an environment, or of those that concern a team; newest first; filters combine with and.
 *
 * @throws Failure PAGE_TOKEN_INVALID
 */
export async function listAuditEntries(
  tx: Db,
  ownerId: string,
  filter: AuditFilter,
  request: ListPageRequest,
): Promise<ListPage<AuditEntryRecord>> {
  const query = listQuery('audit_entry', ownerId, filter)
  return await pageById(query, request, (range) => listEntryRecords(tx, ownerId, filter, range))
}
