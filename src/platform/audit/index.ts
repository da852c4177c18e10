/**
 * Audit log: who changed what, one entry for each call that changed something.
 *
 * Here: the entry that is stored with the change, how entries are read. Never here: what an entry says of a
 * call; `server/api/pipeline/audit.ts` derives it from the contract.
 */

export { PendingEntry } from './pending-entry.ts'
export { listAuditEntries } from './read-entries.ts'
export { recordCommand } from './record-command.ts'
export { AUDIT_ENTRY_DAYS, type AuditEntryInput, type AuditEntryRecord } from './sql/entry.ts'
