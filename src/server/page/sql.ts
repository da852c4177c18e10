import { type Db, execute, queryOne } from '../../foundation/database/index.ts'

/** A picture that this server has fetched. */
export interface StoredLogo {
  readonly url: string
  /** Null when it was not fetched yet, or that failed. */
  readonly contentType: string | null
  readonly body: Buffer | null
  /** It may be fetched: it never was, the last failure is older than an hour, or the picture older than a week. */
  readonly isDue: boolean
}

/**
 * Registers addresses of pictures, so that they may be fetched, and notes that they are in use. In the order of their hashes, so
 * that two callers do not wait for each other.
 */
export async function insertLogos(
  tx: Db,
  logos: readonly { readonly hash: Buffer; readonly url: string }[],
): Promise<void> {
  await tx('connect_logo')
    .insert(logos.toSorted((one, other) => one.hash.compare(other.hash)).map(({ hash, url }) => ({ hash, url })))
    .onConflict('hash')
    .merge({ used_at: tx.raw('now()') })
    .where('connect_logo.used_at', '<', tx.raw("now() - interval '1 day'"))
}

/** Whether a picture may be fetched: one that failed after an hour, a stored one after a week. */
const IS_DUE = `(attempted_at is null
  or attempted_at < now() - case when content_type is null then interval '1 hour' else interval '7 days' end)`

/** Index: primary key. */
export async function findLogo(tx: Db, hash: Buffer): Promise<StoredLogo | undefined> {
  return await queryOne(
    tx,
    `select url, content_type, body,
       ${IS_DUE} as is_due
     from connect_logo where hash = :hash`,
    { hash },
  )
}

/** Marks a picture as being fetched; false when it is not due, because another process does it. */
export async function claimLogo(tx: Db, hash: Buffer): Promise<boolean> {
  const claimed = await queryOne(
    tx,
    `update connect_logo set attempted_at = now()
     where hash = :hash and ${IS_DUE}
     returning url`,
    { hash },
  )
  return claimed !== undefined
}

/** Stores a fetched picture. */
export async function storeLogo(
  tx: Db,
  hash: Buffer,
  { contentType, body }: { readonly contentType: string; readonly body: Buffer },
): Promise<void> {
  await execute(
    tx,
    'update connect_logo set content_type = :contentType, body = :body, attempted_at = now() where hash = :hash',
    { hash, contentType, body },
  )
}

/** Deletes at most `limit` pictures that no page has shown for so long. Uses connect_logo_used. */
export async function deleteUnusedLogos(tx: Db, unusedMs: number, limit: number): Promise<number> {
  return await execute(
    tx,
    `delete from connect_logo where hash in (
       select hash from connect_logo where used_at < now() - :unusedMs * interval '1 millisecond'
       order by used_at limit :limit)`,
    { unusedMs, limit },
  )
}
