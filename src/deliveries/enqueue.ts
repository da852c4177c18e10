import { newId } from '../base/index.ts'
import type { Tx } from '../database/index.ts'
import type { NewDelivery } from './delivery.ts'
import { insertDeliveries } from './sql/delivery.ts'

/**
 * Creates deliveries and puts them into the queue, in the caller's transaction. A webhook that does not exist, is paused or
 * disabled is noticed when its turn comes: the delivery is discarded then.
 *
 * Deliveries of the triggers `recovery` and `missing` share the slots of later attempts, so that they delay no fresh event.
 *
 * @returns the ids of the new deliveries, UUIDv7 in the order given; an event that no longer exists gets none
 */
export async function enqueueDeliveries(tx: Tx, items: readonly NewDelivery[]): Promise<readonly string[]> {
  if (items.length === 0) return []
  return await insertDeliveries(
    tx,
    items.map((item) => ({ ...item, id: newId() })),
  )
}
