import type { Db } from '../../../foundation/database/index.ts'
import { type DueTable, type Lease, updateHeld } from '../../../foundation/queue/index.ts'

/** A deleted account whose subscriptions and grant are to be ended at the third party. */
export interface AccountRemoval {
  readonly id: string
  /** Encrypted with a key of its own. */
  readonly sealed: Uint8Array
  /** This one included. */
  readonly attempts: number
}

/** Removals. Uses account_removal_due. */
export const ACCOUNT_REMOVALS: DueTable<AccountRemoval> = {
  table: 'account_removal',
  columns: { id: 'id', sealed: 'sealed', attempts: 'attempts' },
  key: ['id'],
  due: 'due_at',
}

export async function insertAccountRemoval(
  tx: Db,
  { id, region, sealed }: Pick<AccountRemoval, 'id' | 'sealed'> & { readonly region: string },
): Promise<void> {
  await tx('account_removal').insert({ id, region, sealed })
}

/** Replaces what an attempt needs, because a token was renewed. */
export async function storeRenewed(tx: Db, lease: Lease<AccountRemoval>, sealed: Uint8Array): Promise<void> {
  await updateHeld(tx, ACCOUNT_REMOVALS, lease, 'sealed = :renewed', { renewed: sealed })
}
