import { execute, query, type Tx } from '../database.ts'
import type { AccountStatus } from './integrated-account.ts'

/** One change of an account's status, as it is stored; never altered. */
export interface AccountHistoryRecord {
  /** Orders the entries of one account; no uuid of the whole installation. */
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
 * The SQL of an entry's id: the version of the account after the change. The lock on the account's row orders versions,
 * which clocks of several processes, and of one within a millisecond, do not.
 */
export function historyIdSql(version: string): string {
  return `lpad(to_hex(${version}), 32, '0')::uuid`
}

/** Stores one entry under the account's version after the change; 0 for what came before the account was stored. */
export async function insertAccountHistory(
  tx: Tx,
  account: { readonly environmentId: string; readonly id: string },
  entry: Pick<AccountHistoryRecord, 'fromStatus' | 'toStatus' | 'cause'> & { readonly version: number },
): Promise<void> {
  await execute(
    tx,
    `insert into integrated_account_history (environment_id, integrated_account_id, id, from_status, to_status, cause)
     values (?, ?, ${historyIdSql('?::integer')}, ?, ?, ?)`,
    [account.environmentId, account.id, entry.version, entry.fromStatus, entry.toStatus, entry.cause],
  )
}

/** Entries of the account below `before` (all when undefined), newest first. Rides on the primary key backwards. */
export async function listAccountHistory(
  tx: Tx,
  account: { readonly environmentId: string; readonly id: string },
  page: { readonly before: string | undefined; readonly limit: number },
): Promise<readonly AccountHistoryRecord[]> {
  return await query(
    tx,
    `select id, from_status as "fromStatus", to_status as "toStatus", cause, last_error as "lastError",
       occurred_at as "occurredAt"
     from integrated_account_history
     where environment_id = ? and integrated_account_id = ? and (?::uuid is null or id < ?)
     order by id desc limit ?`,
    [account.environmentId, account.id, page.before ?? null, page.before ?? null, page.limit],
  )
}
