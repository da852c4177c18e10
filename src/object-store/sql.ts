import { type Db, execute, OWNED, query } from '../database/index.ts'

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
    `insert into context_object (environment_id, id, integrated_account_id, key, bytes, content)
     select :environmentId, v.id, :accountId, v.key, length(content), content
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
