import { type Db, execute, query } from '../../../foundation/database/index.ts'
import type { AccountRef } from './integrated-account.ts'

/** Keys of an account whose last request is known; of more, those that were set longest ago are forgotten. */
export const CONTEXT_KEYS_MAX = 1_000

/**
 * Records which request sets context keys of an account; returns those that no later request has set. Locks the keys in their
 * order, so that concurrent requests take turns. Uses the primary key.
 */
export async function claimContextKeys(
  tx: Db,
  { environmentId, id: accountId }: AccountRef,
  inboundEventId: string,
  keys: readonly string[],
): Promise<ReadonlySet<string>> {
  const claimed = await query<{ readonly key: string }>(
    tx,
    `insert into webhook_context_key as known (environment_id, integrated_account_id, key, inbound_event_id)
     select :environmentId, :accountId, key, :inboundEventId from unnest(:keys::text[]) as given (key) order by key
     on conflict (environment_id, integrated_account_id, key) do update set inbound_event_id = excluded.inbound_event_id
       where known.inbound_event_id <= excluded.inbound_event_id
     returning key`,
    { environmentId, accountId, inboundEventId, keys },
  )
  await execute(
    tx,
    `delete from webhook_context_key known using (
       select key from webhook_context_key where environment_id = :environmentId and integrated_account_id = :accountId
       order by inbound_event_id desc offset ${CONTEXT_KEYS_MAX}
     ) old
     where environment_id = :environmentId and integrated_account_id = :accountId and known.key = old.key`,
    { environmentId, accountId },
  )
  return new Set(claimed.map(({ key }) => key))
}
