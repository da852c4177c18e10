import { type Db, query, queryOne } from '../../../foundation/database/index.ts'

/** Work that waits in a region which no worker serves. */
export interface UnservedWork {
  readonly region: string
  readonly work: 'activation' | 'token' | 'subscription' | 'removal' | 'tick' | 'run'
  readonly count: number
}

/** Regions of the workers that were heard of lately; `'{}'` means all regions. */
const SERVED = 'select regions from worker where last_seen_at > now() - make_interval(secs => :lostAfterSeconds)'

/**
 * Counts what workers should have begun for accounts of regions that none of them serves. While a worker serves all regions
 * it reads the table of workers alone. Each part rides on the index of what is due.
 *
 * @param lostAfterMs a worker that was not heard of for this long does not count
 * @param waitingMs only what has been due for this long: a worker that has just started has not got to it yet
 */
export async function countUnservedWork(
  tx: Db,
  webhookGroup: string,
  lostAfterMs: number,
  waitingMs: number,
): Promise<readonly UnservedWork[]> {
  const lostAfterSeconds = lostAfterMs / 1000
  const general = await queryOne(tx, `${SERVED} and regions = '{}' limit 1`, { lostAfterSeconds })
  if (general !== undefined) return []
  return await query(
    tx,
    `with served as (select unnest(regions) as region from (${SERVED}) worker),
     limits as (select now() - make_interval(secs => :waitingSeconds) as since)
     select region, work, count(*) as count from (
       select region, 'activation' as work from integrated_account, limits
       where status = 'connecting' and connecting_due_at <= since
       union all select region, 'token' from account_token, limits where due_at <= since
       union all select region, 'subscription' from webhook_subscription, limits where due_at <= since
       union all select region, 'removal' from account_removal, limits where due_at <= since
       union all select region, 'tick' from trigger_schedule, limits
       where shard between 0 and 63 and next_fire_at <= since
       union all select region, 'run' from run_queue, limits where queue_group = :webhookGroup and available_at <= since
     ) waiting
     where region not in (select region from served) group by region, work order by region, work`,
    { lostAfterSeconds, waitingSeconds: waitingMs / 1000, webhookGroup },
  )
}
