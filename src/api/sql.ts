import { execute, queryOne, type Tx } from '../database/index.ts'

/** A create that was asked for once already. */
export interface IdempotencyKeyRecord {
  readonly method: string
  /** The digest of the request and the first answer, sealed together; null only inside the transaction that is making it. */
  readonly sealedAnswer: Uint8Array | null
}

/** The owner's earlier request of that id, if any. Rides on the primary key. */
export async function findIdempotencyKey(
  tx: Tx,
  ownerId: string,
  requestId: string,
): Promise<IdempotencyKeyRecord | undefined> {
  return await queryOne(
    tx,
    `select method, sealed_answer as "sealedAnswer"
     from idempotency_key where owner_id = ? and request_id = ?`,
    [ownerId, requestId],
  )
}

/**
 * Takes the request id for this transaction; false when it is taken.
 *
 * A second transaction with the same id waits here until the first one ends: it then sees the stored answer, or takes
 * the id itself when the first rolled back.
 */
export async function insertIdempotencyKey(
  tx: Tx,
  key: { readonly ownerId: string; readonly requestId: string; readonly method: string },
): Promise<boolean> {
  const claimed = await execute(
    tx,
    `insert into idempotency_key (owner_id, request_id, method) values (?, ?, ?)
     on conflict (owner_id, request_id) do nothing`,
    [key.ownerId, key.requestId, key.method],
  )
  return claimed === 1
}

/** Keeps the answer for repetitions. */
export async function storeIdempotentResponse(
  tx: Tx,
  ownerId: string,
  requestId: string,
  sealedAnswer: Uint8Array,
): Promise<void> {
  await execute(tx, 'update idempotency_key set sealed_answer = ? where owner_id = ? and request_id = ?', [
    sealedAnswer,
    ownerId,
    requestId,
  ])
}

/** Forgets up to `limit` keys made before `before`; returns how many. Rides on idempotency_key_age. */
export async function deleteOldIdempotencyKeys(tx: Tx, before: Date, limit: number): Promise<number> {
  return await execute(
    tx,
    `delete from idempotency_key where (owner_id, request_id) in
       (select owner_id, request_id from idempotency_key where created_at < ? order by created_at limit ? for update skip locked)`,
    [before, limit],
  )
}
