import { lowestIdAt } from '../../../foundation/base/index.ts'
import { type DayTable, type Db, execute, jsonb, newestFirst } from '../../../foundation/database/index.ts'
import type { JsonObject } from '../../../foundation/json/index.ts'

/** Who made a call: an API token, or a command on the machine of the installation, which has none. */
type AuditActorKind = 'team_token' | 'environment_token' | 'command'

/** An entry without what the database adds. */
export interface AuditEntryInput {
  /** The environment in which the call acted, else the team. */
  readonly ownerId: string
  readonly id: string
  readonly teamId: string
  readonly actorKind: AuditActorKind
  readonly actorId: string | null
  /** The installation's operator has acted inside the team. */
  readonly isImpersonation: boolean
  /** Service and method: `TeamService/UpdateTeam`; of a command its name: `patchbay token create`. */
  readonly method: string
  readonly targetType: string
  readonly targetId: string | null
  readonly requestId: string
  /** By path: `{"after": value}`; `{}` where the value is not recorded. */
  readonly changes: JsonObject
  readonly clientAddress: string | null
  readonly userAgent: string | null
}

/** An entry as stored. */
export interface AuditEntryRecord extends AuditEntryInput {
  readonly occurredAt: Date
}

/** Which entries to list; what is undefined does not restrict. */
export interface AuditFilter {
  readonly method?: string | undefined
  readonly actorId?: string | undefined
  readonly targetId?: string | undefined
  /** Called at or after this moment. */
  readonly since?: Date | undefined
  /** Called before this moment. */
  readonly until?: Date | undefined
}

/** The table of entries, partitioned by the day in the id, a UUIDv7. */
export const AUDIT_ENTRY_DAYS: DayTable = { name: 'audit_entry', column: 'id', lowest: lowestIdAt }

const COLUMNS = `owner_id, id, team_id, actor_kind, actor_id, is_impersonation, method, target_type, target_id, request_id,
  changes, client_address, user_agent`

/** Inserts an entry: `$1` says whether also in a transaction that has changed nothing. The same entry twice is one. */
export const INSERT_ENTRY = `insert into audit_entry (${COLUMNS}, occurred_at)
  select $2::uuid, $3::uuid, $4::uuid, $5::text, $6::uuid, $7::boolean, $8::text, $9::text, $10::text, $11::text, $12::jsonb,
    $13::text, $14::text, clock_timestamp()
  where $1::boolean or pg_current_xact_id_if_assigned() is not null
  on conflict do nothing`

/** The values of `INSERT_ENTRY`. */
export function entryValues(entry: AuditEntryInput, isAlone: boolean): readonly (string | null)[] {
  return [
    String(isAlone),
    entry.ownerId,
    entry.id,
    entry.teamId,
    entry.actorKind,
    entry.actorId,
    String(entry.isImpersonation),
    entry.method,
    entry.targetType,
    entry.targetId,
    storable(entry.requestId),
    jsonb(entry.changes),
    entry.clientAddress,
    entry.userAgent === null ? null : storable(entry.userAgent),
  ]
}

/** Inserts an entry by itself. */
export async function insertEntry(tx: Db, entry: AuditEntryInput): Promise<void> {
  const values = entryValues(entry, true)
  await execute(tx, INSERT_BY_NAME, Object.fromEntries(values.map((value, at) => [`v${at + 1}`, value])))
}

const INSERT_BY_NAME = INSERT_ENTRY.replace(/\$(\d+)/g, ':v$1')

/** PostgreSQL stores no NUL, and half of a pair of surrogates is no character. */
function storable(text: string): string {
  return text.replaceAll('\0', '').toWellFormed()
}

/**
 * At most `limit` entries of an owner below the id `before`, newest first. Each filter has an index that ends with the id; times
 * are those of ids.
 */
export async function listEntryRecords(
  tx: Db,
  ownerId: string,
  { method, actorId, targetId, since, until }: AuditFilter,
  page: { readonly before: string | undefined; readonly limit: number },
): Promise<readonly AuditEntryRecord[]> {
  const entries = tx('audit_entry').where({ owner_id: ownerId })
  if (method !== undefined) entries.where({ method })
  if (actorId !== undefined) entries.where({ actor_id: actorId })
  if (targetId !== undefined) entries.where({ target_id: targetId })
  if (since !== undefined) entries.where('id', '>=', lowestIdAt(since))
  if (until !== undefined) entries.where('id', '<', lowestIdAt(until))
  return await entries.modify(newestFirst, page).select(tx.raw(`${COLUMNS}, occurred_at`))
}
