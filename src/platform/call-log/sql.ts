import type { CallCause, CallClass, LoggedCall } from '../../engine/proxy/index.ts'
import { lowestIdAt } from '../../foundation/base/index.ts'
import {
  type DayTable,
  type Db,
  deleteBatchOfEnvironment,
  execute,
  newestFirst,
  query,
  queryOne,
  type Tx,
} from '../../foundation/database/index.ts'

/** An entry as stored. */
export interface LogEntryRecord {
  readonly id: string
  readonly environmentId: string
  readonly integratedAccountId: string | null
  readonly environmentIntegrationId: string | null
  readonly resource: string
  readonly method: string
  readonly httpMethod: string
  readonly url: string
  readonly status: number | null
  readonly class: CallClass
  readonly errorMessage: string | null
  readonly startedAt: Date
  readonly dnsMs: number | null
  readonly connectMs: number | null
  readonly tlsMs: number | null
  readonly firstByteMs: number | null
  readonly totalMs: number
  readonly attempt: number
  readonly bytesSent: number
  readonly bytesReceived: number
  readonly upstreamRequestId: string | null
  readonly cause: CallCause['kind']
  readonly causeId: string | null
  readonly requestId: string | null
  readonly hasContent: boolean
}

/** Which entries to list; what is undefined does not restrict. */
export interface CallLogFilter {
  readonly integratedAccountId?: string | undefined
  readonly environmentIntegrationId?: string | undefined
  readonly resource?: string | undefined
  readonly class?: CallClass | undefined
  readonly cause?: CallCause['kind'] | undefined
  readonly causeId?: string | undefined
  /** Everything but successes. */
  readonly failed?: true | undefined
  /** Part of the path of the address or of `resource.method`, in any case. Read with a bound: `findScanEnd`. */
  readonly pathContains?: string | undefined
  /** Ended at or after this moment. */
  readonly since?: Date | undefined
  /** Ended before this moment. */
  readonly until?: Date | undefined
}

/** The entries, partitioned by the day in the id, a UUIDv7, and the counts of those that were dropped, by the hour. */
export const CALL_LOG_DAYS: readonly DayTable[] = [
  { name: 'call_log_entry', column: 'id', lowest: lowestIdAt },
  { name: 'call_log_drop', column: 'hour', lowest: (dayStart) => dayStart.toISOString() },
]

const COLUMNS = `id, environment_id, integrated_account_id, environment_integration_id, resource, method, http_method, url, status,
  class, error_message, started_at, dns_ms, connect_ms, tls_ms, first_byte_ms, total_ms, attempt, bytes_sent::float8 as bytes_sent,
  bytes_received::float8 as bytes_received, upstream_request_id, cause, cause_id, request_id,
  content is not null as has_content`

/**
 * Inserts entries in one statement. Its commit does not wait for the disk: a crash of PostgreSQL loses the entries of the last
 * moment.
 *
 * @param contents encrypted headers and bodies, by the id of the entry
 */
export async function insertLogEntries(
  tx: Db,
  calls: readonly LoggedCall[],
  contents: ReadonlyMap<string, Uint8Array>,
): Promise<void> {
  await execute(
    tx,
    `with relaxed as materialized (select set_config('synchronous_commit', 'off', true))
     insert into call_log_entry (environment_id, id, integrated_account_id, environment_integration_id, resource, method,
       http_method, url, status, class, error_message, started_at, dns_ms, connect_ms, tls_ms, first_byte_ms, total_ms, attempt,
       bytes_sent, bytes_received, upstream_request_id, cause, cause_id, request_id, content)
     select given.* from relaxed, json_to_recordset(:rows::json) as given (e uuid, i uuid, a uuid, n uuid, r text, m text, v text,
       u text, s smallint, c text, x text, t timestamptz, d real, o real, l real, f real, w real, k smallint, y bigint, z bigint,
       q text, g text, h text, j text, b bytea)`,
    { rows: JSON.stringify(calls.map((call) => rowOf(call, contents.get(call.id)))) },
  )
}

/** The row under the short names of the statement above. */
function rowOf(call: LoggedCall, content: Uint8Array | undefined) {
  return {
    e: call.environmentId,
    i: call.id,
    a: call.integratedAccountId,
    n: call.environmentIntegrationId,
    r: call.resource,
    m: call.method,
    v: call.httpMethod,
    u: storable(call.url),
    s: call.status,
    c: call.class,
    x: call.errorMessage && storable(call.errorMessage),
    t: call.startedAt,
    d: call.dnsMs,
    o: call.connectMs,
    l: call.tlsMs,
    f: call.firstByteMs,
    w: call.totalMs,
    k: call.attempt,
    y: call.bytesSent,
    z: call.bytesReceived,
    q: call.upstreamRequestId && storable(call.upstreamRequestId),
    g: call.cause.kind,
    h: call.cause.id && storable(call.cause.id),
    j: call.requestId,
    b: content && `\\x${Buffer.from(content.buffer, content.byteOffset, content.byteLength).toString('hex')}`,
  }
}

/** PostgreSQL stores no NUL, and half of a pair of surrogates is no character. */
function storable(text: string): string {
  return text.replaceAll('\0', '').toWellFormed()
}

/** Entries that a page compares with the text of a path. */
export const SCAN_ROWS_MAX = 5_000

/**
 * Where a filter by text stops reading: the id of the last of SCAN_ROWS_MAX entries, in that order, that the other filters let through.
 * Uses their indexes, see `listLogEntryRecords`.
 *
 * @returns undefined when there are fewer
 */
export async function findScanEnd(
  tx: Db,
  environmentId: string,
  { pathContains: _, ...others }: CallLogFilter,
  order: 'asc' | 'desc',
  before?: string,
): Promise<string | undefined> {
  const entries = entriesWhere(tx, environmentId, others)
  if (before !== undefined) entries.where('id', '<', before)
  const found = await entries
    .orderBy('id', order)
    .offset(SCAN_ROWS_MAX - 1)
    .first('id')
  return found?.id
}

/**
 * At most `limit` entries of the environment below the id `before`, newest first. Each filter has an index that ends with the id:
 * call_log_entry_of_account, _of_installation, _of_resource, _of_cause, _of_cause_kind, _failed (all classes but successes, which most
 * are), _not_successful, and the primary key for times, for successes, for texts, and for no filter.
 *
 * @param page `from`: the lowest id that is read
 */
export async function listLogEntryRecords(
  tx: Db,
  environmentId: string,
  filter: CallLogFilter,
  page: { readonly before: string | undefined; readonly from?: string | undefined; readonly limit: number },
): Promise<readonly LogEntryRecord[]> {
  const entries = entriesWhere(tx, environmentId, filter).modify(newestFirst, page)
  if (page.from !== undefined) entries.where('id', '>=', page.from)
  return await entries.select(tx.raw(COLUMNS))
}

/** At most `limit` entries since a moment up to the id `to`, oldest first. Uses the indexes of `listLogEntryRecords`. */
export async function listLogEntriesSince(
  tx: Db,
  environmentId: string,
  filter: CallLogFilter & { readonly since: Date },
  { limit, to }: { readonly limit: number; readonly to: string | undefined },
): Promise<readonly LogEntryRecord[]> {
  const entries = entriesWhere(tx, environmentId, filter)
  if (to !== undefined) entries.where('id', '<=', to)
  return await entries.orderBy('id').limit(limit).select(tx.raw(COLUMNS))
}

/** Knex takes a question mark without a backslash for a value. */
const PATH_CONTAINS = `(strpos(lower(substring(url from '://[^/\\?]*([^\\?]*)')), lower(:pathContains)) > 0
  or strpos(lower(resource || '.' || method), lower(:pathContains)) > 0)`

function entriesWhere(tx: Db, environmentId: string, filter: CallLogFilter) {
  const { integratedAccountId, environmentIntegrationId, resource, cause, causeId, pathContains, since, until } = filter
  const entries = tx('call_log_entry').where({ environment_id: environmentId })
  if (integratedAccountId !== undefined) entries.where({ integrated_account_id: integratedAccountId })
  if (environmentIntegrationId !== undefined) entries.where({ environment_integration_id: environmentIntegrationId })
  // The conditions of partial indexes.
  if (resource !== undefined) entries.where({ resource }).whereRaw(`resource <> ''`)
  if (filter.class !== undefined) entries.where({ class: filter.class })
  if (filter.failed || (filter.class !== undefined && filter.class !== 'success'))
    entries.whereRaw(`class <> 'success'`)
  if (cause !== undefined) entries.where({ cause })
  if (causeId !== undefined) entries.where({ cause_id: causeId })
  if (pathContains !== undefined) entries.whereRaw(PATH_CONTAINS, { pathContains })
  if (since !== undefined) entries.where('id', '>=', lowestIdAt(since))
  if (until !== undefined) entries.where('id', '<', lowestIdAt(until))
  return entries
}

/** Uses the primary key of the partition of the id. */
export async function findLogEntry(
  tx: Db,
  environmentId: string,
  id: string,
): Promise<(LogEntryRecord & { readonly content: Uint8Array | null }) | undefined> {
  return await tx('call_log_entry')
    .where({ environment_id: environmentId, id })
    .first(tx.raw(`${COLUMNS}, content`))
}

/** Locks those of the environments that are there, so that they stay until the transaction ends. Uses the primary key. */
export async function lockEnvironments(tx: Tx, ids: readonly string[]): Promise<readonly string[]> {
  if (ids.length === 0) return []
  const found = await query<{ readonly id: string }>(
    tx,
    'select id from environment where id = any(:ids::uuid[]) order by id for key share',
    { ids },
  )
  return found.map(({ id }) => id)
}

/** Adds to the counts of this hour, in the order of the environments, so that processes wait for each other in one order. */
export async function addDrops(tx: Db, drops: ReadonlyMap<string, number>): Promise<void> {
  if (drops.size === 0) return
  await execute(
    tx,
    `insert into call_log_drop (environment_id, hour, entries)
     select id, date_trunc('hour', now()), entries from unnest(:ids::uuid[], :counts::bigint[]) as dropped (id, entries) order by id
     on conflict (environment_id, hour) do update set entries = call_log_drop.entries + excluded.entries`,
    { ids: [...drops.keys()], counts: [...drops.values()] },
  )
}

/** Entries of the environment that were dropped in the days that are kept, by all processes. Uses the primary keys of the days. */
export async function countDrops(tx: Db, environmentId: string): Promise<number> {
  const found = await queryOne<{ readonly count: number }>(
    tx,
    `select least(coalesce(sum(entries), 0), 2147483647)::integer as count from call_log_drop where environment_id = :environmentId`,
    { environmentId },
  )
  return found?.count ?? 0
}

/**
 * Deletes the entries of an environment and the counts of dropped ones, a batch; returns whether there are no more. Scans the primary
 * keys of all days.
 */
export async function deleteCallLogOfEnvironment(tx: Db, environmentId: string): Promise<boolean> {
  return await deleteBatchOfEnvironment(tx, ['call_log_drop', 'call_log_entry'], environmentId)
}
