import { execute, queryOne, type Tx } from '../../database/index.ts'

/** A deleted account whose subscriptions and grant are to be ended at the third party. */
export interface AccountRemoval {
  readonly id: string
  /** Encrypted with a key of its own. */
  readonly sealed: Uint8Array
  /** This one included. */
  readonly attempts: number
}

export async function insertAccountRemoval(
  tx: Tx,
  { id, region, sealed }: Pick<AccountRemoval, 'id' | 'sealed'> & { readonly region: string },
): Promise<void> {
  await tx('account_removal').insert({ id, region, sealed })
}

/**
 * Takes the removal that has been due the longest; another attempt may be made after `leaseMs`. Workers claim concurrently:
 * rows that another one locks are skipped. Uses account_removal_due.
 */
export async function claimAccountRemoval(
  tx: Tx,
  { leaseMs, regions }: { readonly leaseMs: number; readonly regions: readonly string[] | undefined },
): Promise<AccountRemoval | undefined> {
  return await queryOne(
    tx,
    `update account_removal removal set attempts = attempts + 1, due_at = now() + :leaseMs * interval '1 millisecond'
     from (
       select id from account_removal where due_at <= now() and (:regions::text[] is null or region = any(:regions))
       order by due_at limit 1 for update skip locked
     ) due
     where removal.id = due.id returning removal.id, removal.sealed, removal.attempts`,
    { leaseMs, regions: regions ?? null },
  )
}

/** Uses the primary key. */
export async function postponeAccountRemoval(tx: Tx, id: string, delayMs: number): Promise<void> {
  const sql = `update account_removal set due_at = now() + :delayMs * interval '1 millisecond' where id = :id`
  await execute(tx, sql, { id, delayMs })
}

/** Uses the primary key. */
export async function deleteAccountRemoval(tx: Tx, id: string): Promise<void> {
  await tx('account_removal').where({ id }).delete()
}

/** Replaces what an attempt needs, because a token was renewed. Uses the primary key. */
export async function updateAccountRemoval(tx: Tx, id: string, sealed: Uint8Array): Promise<void> {
  await tx('account_removal').where({ id }).update({ sealed })
}
