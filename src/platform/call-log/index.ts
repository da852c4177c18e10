/**
 * Request log: one entry for each request that is sent to a third party.
 *
 * Here: the buffer that entries wait in, their table, and the verbs that read it. Never here: what is sent, and what is a secret;
 * entries come redacted from the proxy.
 */

export { SEALED_LOG_CONTENT } from './content.ts'
export { type CallLogFilter, getLogEntry, listLogEntries, type WholeLogEntry } from './read-entries.ts'
export { CALL_LOG_DAYS, countDrops, deleteCallLogOfEnvironment, type LogEntryRecord } from './sql.ts'
export { CallLogWatch } from './watch.ts'
export { CallLogWriter } from './writer.ts'
