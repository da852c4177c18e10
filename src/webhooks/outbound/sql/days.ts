import { DAY_MS, lowestIdAt } from '../../../foundation/base/index.ts'
import { type DayTable, type Db, queryOne } from '../../../foundation/database/index.ts'
import { deleteFiguresOfDay } from '../../../platform/figures/index.ts'

/** Deliveries, by the day in the id. A day with deliveries that wait or are being sent is kept. */
export const DELIVERY_DAYS: DayTable = {
  name: 'delivery',
  column: 'id',
  lowest: lowestIdAt,
  storage: 'with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05)',
  isInUse: hasUnfinishedDeliveries,
  unfinished: `state = 'pending'`,
  onDrop: (tx, day) => deleteFiguresOfDay(tx, 'delivery', day),
}

/** Attempts with requests and responses, by the day of their delivery. */
export const ATTEMPT_DAYS: DayTable = { name: 'delivery_attempt', column: 'delivery_id', lowest: lowestIdAt }

/** Uses the primary keys of the queue and of the leases. */
async function hasUnfinishedDeliveries(tx: Db, day: Date): Promise<boolean> {
  const found = await queryOne(
    tx,
    `select from delivery_queue where delivery_id >= :from::uuid and delivery_id < :to::uuid
     union all select from delivery_lease where delivery_id >= :from::uuid and delivery_id < :to::uuid limit 1`,
    { from: lowestIdAt(day), to: lowestIdAt(new Date(day.getTime() + DAY_MS)) },
  )
  return found !== undefined
}
