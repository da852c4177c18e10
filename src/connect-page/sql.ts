import { execute, queryOne, type Tx } from '../database/index.ts'

/** A picture that this server has fetched. */
export interface StoredLogo {
  readonly url: string
  /** Null when it was not fetched yet, or that failed. */
  readonly contentType: string | null
  readonly body: Buffer | null
  /** It may be fetched: it never was, or the last failure is older than an hour. */
  readonly isDue: boolean
}

/** Registers addresses of pictures, so that they may be fetched; those that are known stay as they are. */
export async function insertLogos(
  tx: Tx,
  logos: readonly { readonly hash: Buffer; readonly url: string }[],
): Promise<void> {
  await tx('connect_logo')
    .insert(logos.map(({ hash, url }) => ({ hash, url })))
    .onConflict('hash')
    .ignore()
}

/** Index: primary key. */
export async function findLogo(tx: Tx, hash: Buffer): Promise<StoredLogo | undefined> {
  return await queryOne(
    tx,
    `select url, content_type as "contentType", body,
       content_type is null and (attempted_at is null or attempted_at < now() - interval '1 hour') as "isDue"
     from connect_logo where hash = :hash`,
    { hash },
  )
}

/** Marks a picture as being fetched; false when it has been tried within the last hour. */
export async function claimLogo(tx: Tx, hash: Buffer): Promise<boolean> {
  const claimed = await queryOne(
    tx,
    `update connect_logo set attempted_at = now()
     where hash = :hash and content_type is null and (attempted_at is null or attempted_at < now() - interval '1 hour')
     returning url`,
    { hash },
  )
  return claimed !== undefined
}

/** Stores a fetched picture. */
export async function storeLogo(
  tx: Tx,
  hash: Buffer,
  { contentType, body }: { readonly contentType: string; readonly body: Buffer },
): Promise<void> {
  await execute(
    tx,
    'update connect_logo set content_type = :contentType, body = :body, attempted_at = now() where hash = :hash',
    { hash, contentType, body },
  )
}
