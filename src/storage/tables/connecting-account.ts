import type { JsonObject } from '../../base/index.ts'
import { affected, jsonb, rows, type Tx } from '../database.ts'

/** Names an account. */
export interface AccountRef {
  readonly environmentId: string
  readonly id: string
}

/** Accounts whose steps have not run yet, the longest waiting first. Rides on integrated_account_connecting. */
export async function listConnectingAccounts(
  tx: Tx,
  regions: readonly string[] | undefined,
  limit: number,
): Promise<readonly AccountRef[]> {
  return await rows(
    tx,
    `select environment_id as "environmentId", id from integrated_account
     where status = 'connecting' and (?::text[] is null or region = any(?::text[]))
     order by updated_at limit ?`,
    [regions ?? null, regions ?? null, limit],
  )
}

/** Keeps what the steps of an account came to. Counts as no change of the account: its etag stays. */
export async function storeActionResult(tx: Tx, { environmentId, id }: AccountRef, result: JsonObject): Promise<void> {
  await affected(
    tx,
    'update integrated_account set last_action_result = ?::jsonb where environment_id = ? and id = ?',
    [jsonb(result), environmentId, id],
  )
}
