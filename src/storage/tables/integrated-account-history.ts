import { affected, rows, type Tx } from '../database.ts'
import type { AccountStatus } from './integrated-account.ts'

/** One change of an account's status, as it is stored; never altered. */
export interface AccountHistoryRecord {
  readonly id: string
  /** Null on the first entry. */
  readonly fromStatus: AccountStatus | null
  readonly toStatus: AccountStatus
  readonly cause: string
  /** The account's error after the change; empty when there is none. */
  readonly lastError: string
  readonly occurredAt: Date
}

/** Stores one entry. A later entry takes a later id. */
export async function insertAccountHistory(
  tx: Tx,
  account: { readonly environmentId: string; readonly id: string },
  entry: Omit<AccountHistoryRecord, 'occurredAt' | 'lastError'>,
): Promise<void> {
  await affected(
    tx,
    `insert into integrated_account_history (environment_id, integrated_account_id, id, from_status, to_status, cause)
     values (?, ?, ?, ?, ?, ?)`,
    [account.environmentId, account.id, entry.id, entry.fromStatus, entry.toStatus, entry.cause],
  )
}

/** Entries of the account below `before` (all when undefined), newest first. Rides on the primary key backwards. */
export async function listAccountHistory(
  tx: Tx,
  account: { readonly environmentId: string; readonly id: string },
  page: { readonly before: string | undefined; readonly limit: number },
): Promise<readonly AccountHistoryRecord[]> {
  return await rows(
    tx,
    `select id, from_status as "fromStatus", to_status as "toStatus", cause, last_error as "lastError",
       occurred_at as "occurredAt"
     from integrated_account_history
     where environment_id = ? and integrated_account_id = ? and (?::uuid is null or id < ?)
     order by id desc limit ?`,
    [account.environmentId, account.id, page.before ?? null, page.before ?? null, page.limit],
  )
}
