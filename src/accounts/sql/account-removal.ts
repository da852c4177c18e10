import { REGIONS } from '../../base/index.ts'
import { type Db, dueInRegionsSql, queryOne } from '../../database/index.ts'

/** A deleted account whose subscriptions and grant are to be ended at the third party. */
export interface AccountRemoval {
  readonly id: string
  /** Encrypted with a key of its own. */
  readonly sealed: Uint8Array
  /** This one included. */
  readonly attempts: number
}

export async function insertAccountRemoval(
  tx: Db,
  { id, region, sealed }: Pick<AccountRemoval, 'id' | 'sealed'> & { readonly region: string },
): Promise<void> {
  await tx('account_removal').insert({ id, region, sealed })
}

const DUE = dueInRegionsSql({ table: 'account_removal', key: ['id'], due: 'due_at' })

/**
 * Takes the removal that has been due the longest; another attempt may be made after `leaseMs`. Workers claim concurrently:
 * rows that another one locks are skipped. Uses account_removal_due.
 */
export async function claimAccountRemoval(
  tx: Db,
  { leaseMs, regions }: { readonly leaseMs: number; readonly regions: readonly string[] | undefined },
): Promise<AccountRemoval | undefined> {
  return await queryOne(
    tx,
    `with due as materialized (${DUE})
     update account_removal removal set attempts = attempts + 1, due_at = now() + :leaseMs * interval '1 millisecond'
     from due
     where removal.id = due.id returning removal.id, removal.sealed, removal.attempts`,
    { leaseMs, regions: regions ?? REGIONS, limit: 1 },
  )
}

/** The condition of every write of a holder: no other worker has claimed it since. Uses the primary key. */
function held(tx: Db, { id, attempts }: AccountRemoval) {
  return tx('account_removal').where({ id, attempts })
}

/** Has another attempt made after a delay, unless another worker makes one. */
export async function postponeAccountRemoval(tx: Db, removal: AccountRemoval, delayMs: number): Promise<void> {
  await held(tx, removal).update({ due_at: tx.raw("now() + ? * interval '1 millisecond'", [delayMs]) })
}

/** Returns whether no other worker makes an attempt. */
export async function deleteAccountRemoval(tx: Db, removal: AccountRemoval): Promise<boolean> {
  return (await held(tx, removal).delete()) > 0
}

/** Replaces what an attempt needs, because a token was renewed. */
export async function updateAccountRemoval(tx: Db, removal: AccountRemoval, sealed: Uint8Array): Promise<void> {
  await held(tx, removal).update({ sealed })
}
