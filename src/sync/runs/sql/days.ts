import { DAY_MS } from '../../../foundation/base/index.ts'
import { type DayTable, type Db, execute, queryOne } from '../../../foundation/database/index.ts'
import { deleteFiguresOfDay } from '../../../platform/figures/index.ts'

/** Tables that are partitioned by the UTC day of a tick, in the order a tick writes them: runs, and missed ticks. */
export const RUN_DAY_TABLES: readonly DayTable[] = [
  {
    name: 'sync_job_run',
    column: 'scheduled_for',
    lowest: (dayStart) => dayStart.toISOString(),
    storage: `with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
      autovacuum_vacuum_cost_delay = 0)`,
    isInUse: hasUnfinishedRuns,
    unfinished: `status in ('created', 'running', 'rate_limited')`,
    onDrop: (tx, day) => deleteFiguresOfDay(tx, 'run', day),
  },
  { name: 'missed_ticks', column: 'last_at', lowest: (dayStart) => dayStart.toISOString() },
]

/**
 * Whether runs of a UTC day wait or are leased. Reads the two small tables that have every unfinished run, in one statement,
 * so that a run which moves from one to the other is seen. A million waiting runs take some 0.1 s, an index would cost every
 * tick.
 */
async function hasUnfinishedRuns(tx: Db, day: Date): Promise<boolean> {
  const to = new Date(day.getTime() + DAY_MS)
  const found = await queryOne(
    tx,
    `select from run_queue where scheduled_for >= :day and scheduled_for < :to
     union all select from run_lease where scheduled_for >= :day and scheduled_for < :to limit 1`,
    { day, to },
  )
  return found !== undefined
}

/** Deletes checkpoints before that moment whose runs were dropped, at most `limit`; returns how many. */
export async function deleteOrphanedCheckpoints(tx: Db, before: Date, limit: number): Promise<number> {
  return await execute(
    tx,
    `delete from run_checkpoint where run_id = any(array(
       select c.run_id from run_checkpoint c where c.scheduled_for < :before
         and not exists (select from sync_job_run r where r.id = c.run_id and r.scheduled_for = c.scheduled_for)
       limit :limit))`,
    { before, limit },
  )
}
