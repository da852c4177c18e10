import { newestFirst, queryOne, type Tx } from '../../database/index.ts'
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

/** One row of the table of transitions. */
export interface StatusTransition {
  readonly from: AccountStatus
  readonly to: AccountStatus
}

const COLUMNS = [
  'id',
  'from_status as fromStatus',
  'to_status as toStatus',
  'cause',
  'last_error as lastError',
  'occurred_at as occurredAt',
]

/**
 * The SQL of a history entry's id: the version of the account after the change. The lock on the account's row orders versions, which
 * the clocks of several processes do not.
 */
function historyIdSql(version: string): string {
  return `lpad(to_hex(${version}), 32, '0')::uuid`
}

/** Stores one entry under the account's version after the change; 0 for the creation. */
export async function insertAccountHistory(
  tx: Tx,
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
  tx: Tx,
  { environmentId, id }: AccountRef,
  page: { readonly before: string | undefined; readonly limit: number },
): Promise<readonly AccountHistoryRecord[]> {
  return await tx('integrated_account_history')
    .select(COLUMNS)
    .where({ environment_id: environmentId, integrated_account_id: id })
    .modify(newestFirst, page)
}

/**
 * Makes the transition that starts from the account's present status, if there is one among the given, and writes it to the
 * history. One statement: of two concurrent callers one makes the transition, and the other finds the new status. A transition
 * to `connecting` clears the results of earlier steps and ends the activation's lease. Uses primary keys.
 *
 * Returns the statuses before and after (null without a transition), `undefined` when there is no such account.
 */
export async function transitionAccountStatus(
  tx: Tx,
  { environmentId, id }: AccountRef,
  transitions: readonly StatusTransition[],
  { cause, lastError }: { readonly cause: string; readonly lastError: string },
): Promise<{ readonly from: AccountStatus; readonly to: AccountStatus | null } | undefined> {
  return await queryOne(
    tx,
    `with present as (
       select status from integrated_account where environment_id = :environmentId and id = :id for update
     ), transition as (
       select from_status, to_status
       from present join unnest(:from::text[], :to::text[]) as transitions (from_status, to_status)
         on from_status = present.status
     ), changed as (
       update integrated_account set status = to_status, last_error = :lastError, updated_at = now(),
         version = version + 1,
         last_action_result = case to_status when 'connecting' then '{}' else last_action_result end,
         connecting_due_at = date_trunc('milliseconds', now()), connecting_lease_id = null, connecting_tries = 0
       from transition where environment_id = :environmentId and id = :id returning status, version
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
    },
  )
}
