import type { Database } from '../../../../src/foundation/database/index.ts'
import { execute } from '../../../../src/foundation/database/index.ts'

const SHARDS = 64
const BATCH = 200

/**
 * What one would write by hand to turn due schedules into waiting runs: one statement per batch, all inside the
 * database. It knows neither cron nor accounts, checks no overlap, ranks nothing and catches nothing up.
 *
 * @param connections loops at once, which divide the shards
 */
export async function fireBaseline(database: Database, connections: number): Promise<number> {
  const shards = Array.from({ length: SHARDS }, (_, shard) => shard)
  let fired = 0
  const loop = async (): Promise<void> => {
    for (let shard = shards.shift(); shard !== undefined; shard = shards.shift())
      for (let taken = BATCH; taken === BATCH; fired += taken)
        taken = await execute(database.pool, FIRE, { shard, BATCH })
  }
  await Promise.all(Array.from({ length: connections }, loop))
  return fired
}

const FIRE = `with due as materialized (
    select trigger_id, environment_id, region, next_fire_at from trigger_schedule
    where shard = :shard and next_fire_at <= now()
    order by next_fire_at, trigger_id limit :BATCH for update skip locked
  ), run as (
    insert into sync_job_run (id, scheduled_for, environment_id, trigger_id, kind, sync_job_id, integrated_account_id,
      region, status, daemon_group_key, webhook_id, resources, args, error_handling, ignore_previous_run)
    select uuidv7(), due.next_fire_at, t.environment_id, t.id, 'cron', t.sync_job_id, t.integrated_account_id, due.region,
      'created', t.daemon_group_key, t.webhook_id, j.resources, t.args, 'ignore', false
    from due join sync_job_cron_trigger t on t.environment_id = due.environment_id and t.id = due.trigger_id
      join sync_job j on j.environment_id = t.environment_id and j.id = t.sync_job_id
    on conflict (trigger_id, scheduled_for, kind) do nothing
    returning id, scheduled_for, environment_id, integrated_account_id, trigger_id, region
  ), waiting as (
    insert into run_queue (run_id, scheduled_for, environment_id, integrated_account_id, trigger_id, region, queue_group,
      fair_rank, available_at, attempt)
    select run.*, 'webhook', extract(epoch from now()) * 1000, now(), 0 from run
  )
  update trigger_schedule s set next_fire_at = s.next_fire_at + interval '1 day', last_scheduled_for = s.next_fire_at,
    last_run_id = run.id, last_run_status = 'created'
  from run where s.trigger_id = run.trigger_id`
