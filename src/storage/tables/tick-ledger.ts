import { query, type Tx } from '../database.ts'

/** What became of one tick, or of a stretch of missed ones. */
export interface TickLedgerEntry {
  readonly outcome: 'fired' | 'skipped' | 'missed'
  /** The tick; of a missed stretch, its last. */
  readonly scheduledFor: Date
  readonly runId: string | null
  readonly skipReason: string | null
  readonly missedFrom: Date | null
  readonly missedCount: number | null
}

/**
 * The ledger of a trigger below a tick (all of it when undefined), latest first. Rides on the tick index of the runs and
 * the primary key of missed_ticks. A moment has one entry: a tick is either a run or inside one missed stretch.
 */
export async function listTickLedger(
  tx: Tx,
  triggerId: string,
  below: Date | undefined,
  limit: number,
): Promise<readonly TickLedgerEntry[]> {
  return await query(
    tx,
    `(select case when status = 'skipped' then 'skipped' else 'fired' end as outcome, scheduled_for as "scheduledFor",
        case when status <> 'skipped' then id end as "runId", skip_reason as "skipReason",
        null::timestamptz as "missedFrom", null::integer as "missedCount"
      from sync_job_run where trigger_id = ? and kind = 'cron' and scheduled_for < coalesce(?::timestamptz, 'infinity')
      order by scheduled_for desc limit ?)
     union all
     (select 'missed', last_at, null, null, first_at, count
      from missed_ticks where trigger_id = ? and last_at < coalesce(?::timestamptz, 'infinity')
      order by last_at desc limit ?)
     order by "scheduledFor" desc limit ?`,
    [triggerId, below ?? null, limit, triggerId, below ?? null, limit, limit],
  )
}
