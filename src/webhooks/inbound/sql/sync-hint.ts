import { type Db, execute, queryOne, rowSet } from '../../../foundation/database/index.ts'

/** An item of an inbound event. */
export interface ItemRef {
  readonly inboundEventId: string
  readonly index: number
}

/** A resource of an account that is to be read. */
export interface SyncHint {
  readonly environmentId: string
  readonly integratedAccountId: string
  readonly resource: string
  /** The items that asked for it. */
  readonly items: readonly ItemRef[]
}

/** A hint whose time has come, locked. */
export interface DueHint extends SyncHint {
  /** Hints that it stands for. */
  readonly hints: number
  /** Attempts that failed. */
  readonly attempts: number
}

/** Items that a hint remembers, to be told what became of it. */
const ITEMS_MAX = 100
const HINTS = rowSet('environment_id uuid, integrated_account_id uuid, resource text, items jsonb')
const ITEMS = rowSet('inbound_event_id uuid, index integer')

/**
 * Records hints, each due after the delay, or with the hint that waits for the same account and resource. In the order of their
 * keys, so that two transactions never deadlock; the last statement of a transaction, so that the locks are short.
 */
export async function insertSyncHints(tx: Db, hints: readonly SyncHint[], delayMs: number): Promise<void> {
  await execute(
    tx,
    `insert into sync_hint as s (environment_id, integrated_account_id, resource, due_at, hints, items)
     select environment_id, integrated_account_id, resource, now() + make_interval(secs => :delaySeconds),
       jsonb_array_length(items), items
     from ${HINTS.rows}
     order by 1, 2, 3
     on conflict (environment_id, integrated_account_id, resource) do update set
       hints = s.hints + excluded.hints,
       items = case when jsonb_array_length(s.items) < ${ITEMS_MAX} then s.items || excluded.items else s.items end`,
    {
      delaySeconds: delayMs / 1_000,
      ...HINTS.of(hints.map((hint) => ({ ...hint, items: hint.items.slice(0, ITEMS_MAX) }))),
    },
  )
}

/** Takes the hint that is due first out of the table; passes over those that another process has taken. Uses sync_hint_due. */
export async function takeDueHint(tx: Db): Promise<DueHint | undefined> {
  return await queryOne(
    tx,
    `delete from sync_hint where (environment_id, integrated_account_id, resource) = (
       select environment_id, integrated_account_id, resource from sync_hint where due_at <= now()
       order by due_at limit 1 for update skip locked
     )
     returning environment_id, integrated_account_id, resource, items, hints, attempts`,
    {},
  )
}

/** Delays a hint whose syncs could not be started. */
export async function postponeHint(tx: Db, hint: SyncHint, delayMs: number): Promise<void> {
  const { environmentId, integratedAccountId, resource } = hint
  await execute(
    tx,
    `update sync_hint set due_at = now() + make_interval(secs => :delaySeconds), attempts = attempts + 1
     where environment_id = :environmentId and integrated_account_id = :integratedAccountId and resource = :resource`,
    { delaySeconds: delayMs / 1_000, environmentId, integratedAccountId, resource },
  )
}

/** Deletes a hint whose syncs can never be started. */
export async function deleteHint(tx: Db, { environmentId, integratedAccountId, resource }: SyncHint): Promise<void> {
  await tx('sync_hint')
    .where({ environment_id: environmentId, integrated_account_id: integratedAccountId, resource })
    .delete()
}

/** Writes what became of items. Uses the primary key of the partitions of the ids. */
export async function updateItemDetails(
  tx: Db,
  environmentId: string,
  items: readonly ItemRef[],
  detail: string,
): Promise<void> {
  await execute(
    tx,
    `update inbound_item i set detail = :detail
     from ${ITEMS.rows}
     where i.environment_id = :environmentId and i.inbound_event_id = v.inbound_event_id and i.index = v.index`,
    { detail, environmentId, ...ITEMS.of(items) },
  )
}
