import { type Db, execute, newestFirst, queryOne } from '../../../foundation/database/index.ts'
import type { AccountRef, AccountStatus } from './integrated-account.ts'

/** One change of an account's status as stored; rows are never altered. */
export interface AccountHistoryRecord {
  /** Orders the entries of one account; not unique across accounts. */
  readonly id: string
  /** Null on the first entry. */
  readonly fromStatus: AccountStatus | null
  readonly toStatus: AccountStatus
  readonly cause: string
  /** The account's error after the change; empty when there is none. */
  readonly lastError: string
  readonly occurredAt: Date
}

/**
 * A state of the machine: a status, or `unauthorized`, which is stored and shown as the status `needs_reauth` with the time of
 * the first 401.
 */
export type AccountState = AccountStatus | 'unauthorized'

/** One row of the table of transitions. */
export interface StatusTransition {
  readonly from: AccountState
  readonly to: AccountState
}

/** Entries of one account; beyond them the oldest are deleted. */
export const ACCOUNT_HISTORY_MAX = 200

const COLUMNS = ['id', 'from_status', 'to_status', 'cause', 'last_error', 'occurred_at']

/**
 * The SQL of a history entry's id: the version of the account after the change. The lock on the account's row orders versions, which
 * the clocks of several processes do not.
 */
function historyIdSql(version: string): string {
  return `lpad(to_hex(${version}), 32, '0')::uuid`
}

/** Stores one entry under the account's version after the change; 0 for the creation. */
export async function insertAccountHistory(
  tx: Db,
  { environmentId, id }: AccountRef,
  entry: Pick<AccountHistoryRecord, 'fromStatus' | 'toStatus' | 'cause'> & { readonly version: number },
): Promise<void> {
  await tx('integrated_account_history').insert({
    environment_id: environmentId,
    integrated_account_id: id,
    id: tx.raw(historyIdSql('?::integer'), [entry.version]),
    from_status: entry.fromStatus,
    to_status: entry.toStatus,
    cause: entry.cause,
  })
}

/** At most `limit` entries of the account below the id `before`, newest first. Uses the primary key. */
export async function listAccountHistory(
  tx: Db,
  { environmentId, id }: AccountRef,
  page: { readonly before: string | undefined; readonly limit: number },
): Promise<readonly AccountHistoryRecord[]> {
  return await tx('integrated_account_history')
    .select(COLUMNS)
    .where({ environment_id: environmentId, integrated_account_id: id })
    .modify(newestFirst, page)
}

/**
 * Makes the transition that starts from the account's present state, if there is one among the given, and writes it to the
 * history, of which the newest `ACCOUNT_HISTORY_MAX` entries stay. One statement: of two concurrent callers one makes the
 * transition, and the other finds the new status. A transition to `connecting` clears the results of earlier steps and what
 * calls have said about earlier credentials, and ends the activation's lease. Uses primary keys.
 *
 * Returns the statuses before and after (null without a transition), `undefined` when there is no such account.
 */
export async function transitionAccountStatus(
  tx: Db,
  { environmentId, id }: AccountRef,
  transitions: readonly StatusTransition[],
  { cause, lastError }: { readonly cause: string; readonly lastError: string },
): Promise<{ readonly from: AccountStatus; readonly to: AccountStatus | null } | undefined> {
  return await queryOne(
    tx,
    `with present as (
       select status, case when status = 'needs_reauth' and unauthorized_since is not null then 'unauthorized' else status end as state
       from integrated_account where environment_id = :environmentId and id = :id for update
     ), transition as (
       select present.status as from_status, to_state, case to_state when 'unauthorized' then 'needs_reauth' else to_state end as to_status
       from present join unnest(:from::text[], :to::text[]) as transitions (from_state, to_state)
         on from_state = present.state
     ), changed as (
       update integrated_account set status = to_status, last_error = :lastError, updated_at = now(),
         version = version + 1,
         last_action_result = case to_status when 'connecting' then '{}' else last_action_result end,
         unauthorized_since = case to_state when 'unauthorized' then coalesce(unauthorized_since, now()) end,
         worked_again_at = case to_status when 'connecting' then null else worked_again_at end,
         connecting_due_at = date_trunc('milliseconds', now()), connecting_lease_id = null, connecting_tries = 0
       from transition where environment_id = :environmentId and id = :id returning status, version
     ), earlier as (
       select id, row_number() over (order by id desc) as place from integrated_account_history
       where environment_id = :environmentId and integrated_account_id = :id
     ), superseded as (
       update integrated_account_history entry set superseded_at = now() from earlier, changed
       where environment_id = :environmentId and integrated_account_id = :id and entry.id = earlier.id and place = 1
     ), forgotten as (
       delete from integrated_account_history entry using earlier, changed
       where environment_id = :environmentId and integrated_account_id = :id and entry.id = earlier.id and place >= :entriesMax
     ), written as (
       insert into integrated_account_history
         (environment_id, integrated_account_id, id, from_status, to_status, cause, last_error)
       select :environmentId, :id, ${historyIdSql('version')}, from_status, to_status, :cause, :lastError
       from transition, changed
     )
     select present.status as "from", changed.status as "to"
     from present left join changed on true`,
    {
      environmentId,
      id,
      from: transitions.map(({ from }) => from),
      to: transitions.map(({ to }) => to),
      cause,
      lastError,
      entriesMax: ACCOUNT_HISTORY_MAX,
    },
  )
}

/**
 * Deletes entries that were superseded before the moment; the latest of each account stays. At most `limit`; returns how many.
 * Uses integrated_account_history_superseded.
 */
export async function deleteSupersededHistory(tx: Db, before: Date, limit: number): Promise<number> {
  return await execute(
    tx,
    `delete from integrated_account_history entry using (
       select environment_id, integrated_account_id, id from integrated_account_history
       where superseded_at < :before order by superseded_at limit :limit for update skip locked
     ) old
     where entry.environment_id = old.environment_id and entry.integrated_account_id = old.integrated_account_id
       and entry.id = old.id`,
    { before, limit },
  )
}
