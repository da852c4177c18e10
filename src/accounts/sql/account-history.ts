import { newestFirst, type Tx } from '../../database/index.ts'
import { type AccountRef, type AccountStatus, historyIdSql } from './integrated-account.ts'

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

const COLUMNS = [
  'id',
  'from_status as fromStatus',
  'to_status as toStatus',
  'cause',
  'last_error as lastError',
  'occurred_at as occurredAt',
]

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
