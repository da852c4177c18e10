import { execute, queryOne, type Tx } from '../../database/index.ts'

/** A grant of a deleted account that is to be revoked. */
export interface TokenRevocation {
  readonly id: string
  /** Encrypted with a key of its own. */
  readonly sealed: Uint8Array
  /** This one included. */
  readonly attempts: number
}

export async function insertTokenRevocation(
  tx: Tx,
  { id, region, sealed }: Pick<TokenRevocation, 'id' | 'sealed'> & { readonly region: string },
): Promise<void> {
  await tx('token_revocation').insert({ id, region, sealed })
}

/**
 * Takes the revocation that has been due the longest; another attempt may be made after `leaseMs`. Workers claim concurrently:
 * rows that another one locks are skipped. Uses token_revocation_due.
 */
export async function claimTokenRevocation(
  tx: Tx,
  { leaseMs, regions }: { readonly leaseMs: number; readonly regions: readonly string[] | undefined },
): Promise<TokenRevocation | undefined> {
  return await queryOne(
    tx,
    `update token_revocation revocation set attempts = attempts + 1, due_at = now() + :leaseMs * interval '1 millisecond'
     from (
       select id from token_revocation where due_at <= now() and (:regions::text[] is null or region = any(:regions))
       order by due_at limit 1 for update skip locked
     ) due
     where revocation.id = due.id returning revocation.id, revocation.sealed, revocation.attempts`,
    { leaseMs, regions: regions ?? null },
  )
}

/** Uses the primary key. */
export async function postponeTokenRevocation(tx: Tx, id: string, delayMs: number): Promise<void> {
  const sql = `update token_revocation set due_at = now() + :delayMs * interval '1 millisecond' where id = :id`
  await execute(tx, sql, { id, delayMs })
}

/** Uses the primary key. */
export async function deleteTokenRevocation(tx: Tx, id: string): Promise<void> {
  await tx('token_revocation').where({ id }).delete()
}
