import { type Database, deleteStaleDaemons } from '../storage/index.ts'

/** A daemon that was not heard of for so long is not coming back. */
const STALE_AFTER_MS = 24 * 60 * 60 * 1000
const PRUNE_BATCH = 1_000

/** Forgets daemons that have not been heard of for a day. @returns whether there may be more */
export async function pruneDaemons({ pool: direct }: Pick<Database, 'pool'>): Promise<boolean> {
  return (await deleteStaleDaemons(direct, STALE_AFTER_MS, PRUNE_BATCH)) === PRUNE_BATCH
}
