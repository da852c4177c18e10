import { type Db, execute, OWNED, query, queryOne } from '../../foundation/database/index.ts'
import type { SealedCount } from '../../foundation/secrets/index.ts'

/** Names the account whose context values are meant. */
export interface ContextOwner {
  readonly environmentId: string
  /** Of the account. */
  readonly id: string
}

/** The value of a context key, or its reference. */
export interface ContextObjectRecord {
  readonly environmentId: string
  readonly id: string
  readonly integratedAccountId: string
  readonly key: string
  readonly bytes: number
  /** Encrypted; null once it is in the object store. */
  readonly content: Uint8Array | null
}

/** SQL: the first bytes of an encrypted value are the id of its data key. */
const DATA_KEY_OF_CONTENT = `encode(substring(content from 1 for 16), 'hex')::uuid`

const COLUMNS = `object.environment_id, object.id, integrated_account_id, key,
  bytes, content`

/** The values of the accounts, of any environments, in one statement. Uses context_object_of_account. */
export async function listContextObjects(
  tx: Db,
  owners: readonly ContextOwner[],
): Promise<readonly ContextObjectRecord[]> {
  return await query(
    tx,
    `select ${COLUMNS} from ${OWNED.unnest} as owner (environment_id, id)
     join context_object object on object.environment_id = owner.environment_id
       and integrated_account_id = owner.id and delete_at is null
     order by object.id`,
    OWNED.of(owners),
  )
}

/** Inserts values in one statement. The keys of the account must have none: see `retireContextObjects`. */
export async function insertContextObjects(
  tx: Db,
  { environmentId, id }: ContextOwner,
  objects: readonly { readonly id: string; readonly key: string; readonly content: Uint8Array }[],
): Promise<void> {
  await execute(
    tx,
    `insert into context_object (environment_id, id, integrated_account_id, key, bytes, content, data_key_id)
     select :environmentId, v.id, :accountId, v.key, length(content), content, ${DATA_KEY_OF_CONTENT}
     from unnest(:ids::uuid[], :keys::text[], :contents::text[]) as v (id, key, base64), decode(base64, 'base64') content`,
    {
      environmentId,
      accountId: id,
      ids: objects.map((object) => object.id),
      keys: objects.map(({ key }) => key),
      contents: objects.map(({ content }) => Buffer.from(content).toString('base64')),
    },
  )
}

/**
 * Takes keys away from the account: their objects are deleted after a while, in which readers of the row before may still read
 * them, and a worker that is storing one is done. Uses context_object_of_account.
 *
 * @param keys absent: all
 */
export async function retireContextObjects(
  tx: Db,
  { environmentId, id }: ContextOwner,
  keys: readonly string[] | undefined,
  delayMs: number,
): Promise<void> {
  await execute(
    tx,
    `update context_object set content = null, delete_at = now() + :delayMs * interval '1 millisecond'
     where environment_id = :environmentId and integrated_account_id = :id and delete_at is null
       and (:keys::text[] is null or key = any(:keys))`,
    { environmentId, id, keys: keys ?? null, delayMs },
  )
}

/**
 * Claims values to be stored as objects, due the longest first; another worker claims them again after `leaseMs`. Uses
 * context_object_upload.
 */
export async function claimUploads(
  tx: Db,
  { limit, leaseMs }: { readonly limit: number; readonly leaseMs: number },
): Promise<readonly (ContextObjectRecord & { readonly content: Uint8Array })[]> {
  return await query(
    tx,
    `update context_object object set upload_at = now() + :leaseMs * interval '1 millisecond'
     from (
       select environment_id, id from context_object where content is not null and upload_at <= now()
       order by upload_at limit :limit for update skip locked
     ) due
     where object.environment_id = due.environment_id and object.id = due.id returning ${COLUMNS}`,
    { limit, leaseMs },
  )
}

/** Drops the bytes of a value that is stored as an object. Uses the primary key. */
export async function completeUpload(tx: Db, { environmentId, id }: ContextObjectRecord): Promise<void> {
  await execute(tx, 'update context_object set content = null where environment_id = :environmentId and id = :id', {
    environmentId,
    id,
  })
}

/**
 * Claims objects that are to be deleted, due the longest first; one whose deletion fails is due again after `retryMs`, behind all
 * that are due. Uses context_object_delete.
 */
export async function claimExpiredObjects(
  tx: Db,
  { limit, retryMs }: { readonly limit: number; readonly retryMs: number },
): Promise<readonly ContextOwner[]> {
  return await query(
    tx,
    `update context_object object set delete_at = now() + :retryMs * interval '1 millisecond'
     from (
       select environment_id, id from context_object where delete_at <= now()
       order by delete_at limit :limit for update skip locked
     ) due
     where object.environment_id = due.environment_id and object.id = due.id
     returning object.environment_id, object.id`,
    { limit, retryMs },
  )
}

/** Deletes the row of a deleted object. Uses the primary key. */
export async function deleteContextObject(tx: Db, environmentId: string, id: string): Promise<void> {
  await execute(tx, 'delete from context_object where environment_id = :environmentId and id = :id', {
    environmentId,
    id,
  })
}

/** How many values there are, by what wraps their data key: of deleted accounts too, until their objects are deleted. */
export async function countSealedObjects(tx: Db): Promise<readonly SealedCount[]> {
  return await query(
    tx,
    `select key_encryption_key_id, count(*) filter (where content is not null) as rows,
       count(*) filter (where content is null) as objects
     from context_object left join data_key on data_key.id = data_key_id
     where delete_at is null or key_encryption_key_id is not null
     group by 1`,
  )
}

/** How many values of an environment are under a data key, or may be: those of objects that were stored without its id count. */
export async function countObjectsUnder(tx: Db, environmentId: string, dataKeyId: string): Promise<number> {
  const row = await queryOne<{ count: number }>(
    tx,
    `select count(*) from context_object
     where environment_id = :environmentId and (data_key_id = :dataKeyId or data_key_id is null)`,
    { environmentId, dataKeyId },
  )
  return row?.count ?? 0
}

/** A value with its data key; null: the object says it. */
export type SealedObjectRecord = ContextObjectRecord & { readonly dataKeyId: string | null }

/** Values of accounts that are under a data key or may be, in the order of their ids, after the given one. */
export async function listObjectsUnder(
  tx: Db,
  environmentId: string,
  dataKeyId: string,
  after: string | undefined,
  limit: number,
): Promise<readonly SealedObjectRecord[]> {
  return await query(
    tx,
    `select ${COLUMNS}, data_key_id from context_object object
     where environment_id = :environmentId and (data_key_id = :dataKeyId or data_key_id is null) and delete_at is null
       and (:after::uuid is null or id > :after)
     order by id limit :limit`,
    { environmentId, dataKeyId, after: after ?? null, limit },
  )
}

/** Notes the data key that an object says. Uses the primary key. */
export async function storeDataKey(
  tx: Db,
  { environmentId, id }: ContextObjectRecord,
  dataKeyId: string,
): Promise<void> {
  await execute(
    tx,
    `update context_object set data_key_id = :dataKeyId
     where environment_id = :environmentId and id = :id and data_key_id is null`,
    { environmentId, id, dataKeyId },
  )
}

/**
 * Gives the key of the account a new object with the same value, unless it has changed meanwhile. The row stays, so that
 * writers of the account, which wait for it, find it as they would have; the object before is deleted after a while, see
 * `retireContextObjects`. Uses the primary key.
 *
 * @returns whether it did
 */
export async function replaceObject(
  tx: Db,
  { environmentId, id, integratedAccountId, key, bytes }: ContextObjectRecord,
  next: { readonly id: string; readonly content: Uint8Array; readonly dataKeyBefore: string; readonly delayMs: number },
): Promise<boolean> {
  const replaced = await execute(
    tx,
    `with next as (select :content::bytea as value)
     update context_object set id = :nextId, content = next.value, bytes = length(next.value),
       upload_at = date_trunc('milliseconds', now()),
       data_key_id = encode(substring(next.value from 1 for 16), 'hex')::uuid
     from next where environment_id = :environmentId and id = :id and delete_at is null`,
    { environmentId, id, nextId: next.id, content: next.content },
  )
  if (replaced === 0) return false
  await execute(
    tx,
    `insert into context_object (environment_id, id, integrated_account_id, key, bytes, data_key_id, delete_at)
     values (:environmentId, :id, :integratedAccountId, :key, :bytes, :dataKeyBefore,
       now() + :delayMs * interval '1 millisecond')`,
    { environmentId, id, integratedAccountId, key, bytes, dataKeyBefore: next.dataKeyBefore, delayMs: next.delayMs },
  )
  return true
}
