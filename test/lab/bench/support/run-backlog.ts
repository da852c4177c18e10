import { newId } from '../../../../src/foundation/base/index.ts'
import type { Database } from '../../../../src/foundation/database/index.ts'
import { execute } from '../../../../src/foundation/database/index.ts'
import { shardOf } from '../../../../src/sync/schedules/shard-cursors.ts'

/** How much waits. */
export interface Backlog {
  readonly environments: number
  readonly accountsPerEnvironment: number
  readonly runsPerAccount: number
}

/**
 * Lets runs wait as ticks would have left them: a schedule per account, a run and its place in the queue per tick, ranked
 * as fair queueing ranks them.
 */
export async function insertBacklog(database: Database, backlog: Backlog): Promise<number> {
  for (let environment = 0; environment < backlog.environments; environment++)
    await insertEnvironment(database, backlog)
  for (const table of ['sync_job_run', 'run_queue', 'trigger_schedule'])
    await execute(database.pool, `vacuum analyze ${table}`)
  return backlog.environments * backlog.accountsPerEnvironment * backlog.runsPerAccount
}

async function insertEnvironment(database: Database, backlog: Backlog): Promise<void> {
  const triggerIds = Array.from({ length: backlog.accountsPerEnvironment }, () => newId())
  await database.transaction(async (tx) => {
    // Triggers themselves are not read on the way through the queue; their schedules are written.
    await execute(tx, 'set local session_replication_role = replica')
    await execute(
      tx,
      `with t as (
         insert into trigger_schedule (trigger_id, environment_id, shard, region, cron_expression, next_fire_at)
         select id, :environmentId, shard, 'wnam', '0 * * * *', now() + interval '1 hour' from unnest(:triggerIds::uuid[], :shards::smallint[]) v (id, shard)
         returning trigger_id, environment_id, gen_random_uuid() as account_id
       ), r as (
         insert into sync_job_run (id, scheduled_for, environment_id, trigger_id, kind, sync_job_id, integrated_account_id,
           region, status, webhook_id, resources, args, error_handling, ignore_previous_run)
         select gen_random_uuid(), date_trunc('second', now()) - make_interval(secs => n), t.environment_id, t.trigger_id,
           'cron', :syncJobId, t.account_id, 'wnam', 'created', :webhookId, '[{"resource": "contacts", "method": "list"}]', '{}', 'ignore', false
         from t cross join generate_series(1, :runsPerAccount::integer) n
         returning *
       )
       insert into run_queue (run_id, scheduled_for, environment_id, integrated_account_id, trigger_id, region, queue_group,
         fair_rank, available_at, attempt)
       select id, scheduled_for, environment_id, integrated_account_id, trigger_id, region, 'webhook',
         (extract(epoch from now()) * 1000)::bigint
           + 1000 * row_number() over (partition by integrated_account_id order by scheduled_for), now(), 0
       from r`,
      {
        environmentId: newId(),
        triggerIds,
        shards: triggerIds.map(shardOf),
        syncJobId: newId(),
        webhookId: newId(),
        runsPerAccount: backlog.runsPerAccount,
      },
    )
  })
}
