import { type Database, deleteUnheardDaemons } from '../storage/index.ts'

/** A daemon that was not heard of for so long is not coming back. */
const UNHEARD_MS = 24 * 60 * 60 * 1000
const BATCH = 1_000

/** Forgets daemons that have not been heard of for a day. @returns whether there may be more */
export async function forgetDaemons({ direct }: Pick<Database, 'direct'>): Promise<boolean> {
  return (await deleteUnheardDaemons(direct, UNHEARD_MS, BATCH)) === BATCH
}
