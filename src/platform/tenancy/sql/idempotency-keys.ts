import { type Db, execute } from '../../../foundation/database/index.ts'
import type { SealedColumn } from '../../../foundation/secrets/index.ts'

/** The stored answers: what they are encrypted with, also for the rotation of data keys. */
export const SEALED_ANSWERS: SealedColumn = {
  table: 'idempotency_key',
  column: 'sealed_answer',
  owner: 'owner_id',
  id: 'request_id',
  associatedData: (requestId) => `idempotency_key|sealed_answer|${requestId}`,
}

/** A create that its client named by a request id, so that repeating it has no second effect. */
export interface IdempotencyKeyRecord {
  readonly method: string
  /** The digest of the request and the first answer, encrypted together; null inside the transaction that is making it. */
  readonly sealedAnswer: Uint8Array | null
}

/** The owner's earlier request of that id, if any. Index: primary key. */
export async function findIdempotencyKey(
  tx: Db,
  ownerId: string,
  requestId: string,
): Promise<IdempotencyKeyRecord | undefined> {
  return await tx('idempotency_key')
    .where({ owner_id: ownerId, request_id: requestId })
    .first(['method', 'sealed_answer'])
}

/**
 * Takes the request id for this transaction; false when it is taken.
 *
 * A second transaction with the same id waits here until the first one ends: then it reads the stored answer, or takes the
 * id itself when the first was rolled back. Index: primary key.
 */
export async function insertIdempotencyKey(
  tx: Db,
  key: { readonly ownerId: string; readonly requestId: string; readonly method: string },
): Promise<boolean> {
  const inserted = await tx('idempotency_key')
    .insert({ owner_id: key.ownerId, request_id: key.requestId, method: key.method })
    .onConflict(['owner_id', 'request_id'])
    .ignore()
    .returning('request_id')
  return inserted.length > 0
}

/** Stores the answer that repetitions get. */
export async function storeIdempotentResponse(
  tx: Db,
  ownerId: string,
  requestId: string,
  sealedAnswer: Uint8Array,
): Promise<void> {
  await tx('idempotency_key')
    .where({ owner_id: ownerId, request_id: requestId })
    .update({ sealed_answer: sealedAnswer })
}

/** Deletes up to `limit` keys created before `before`; returns how many. Index: idempotency_key_age. */
export async function deleteOldIdempotencyKeys(tx: Db, before: Date, limit: number): Promise<number> {
  return await execute(
    tx,
    `delete from idempotency_key where (owner_id, request_id) in
       (select owner_id, request_id from idempotency_key where created_at < :before
        order by created_at limit :limit for update skip locked)`,
    { before, limit },
  )
}
