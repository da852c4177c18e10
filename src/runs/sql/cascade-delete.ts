import { execute, query, type Tx } from '../../database/index.ts'
import { deleteMissedTicks } from './tick.ts'

/** What triggers can be removed with. */
export type TriggerOwner = 'sync_job_id' | 'integrated_account_id' | 'webhook_id'

/**
 * Deletes every trigger that belongs to the job, account or webhook, by their foreign keys with their schedules, where
 * their syncs stood, and their missed ticks; returns how many. Rides on the index that begins with the environment and
 * the owner.
 */
export async function deleteTriggersOf(
  tx: Tx,
  environmentId: string,
  owner: TriggerOwner,
  ownerId: string,
): Promise<number> {
  const gone = await query<{ readonly id: string }>(
    tx,
    `with gone as (
       delete from sync_job_cron_trigger where environment_id = ? and ${owner} = ? returning *
     ), forgotten as (
       delete from previous_run p using gone where p.environment_id = gone.environment_id
         and p.sync_job_id = gone.sync_job_id and p.integrated_account_id = gone.integrated_account_id
         and p.trigger_id = gone.id
     )
     select id from gone`,
    [environmentId, ownerId],
  )
  await deleteMissedTicks(
    tx,
    gone.map(({ id }) => id),
  )
  return gone.length
}

/** Asks whoever executes runs of the account to stop at the next page. Rides on run_lease_account. */
export async function stopRunsOfAccount(tx: Tx, environmentId: string, integratedAccountId: string): Promise<void> {
  await execute(
    tx,
    `update run_lease set stop_requested_at = coalesce(stop_requested_at, now())
     where integrated_account_id = ? and environment_id = ?`,
    [integratedAccountId, environmentId],
  )
}

/** Tables of an environment that nothing else removes, children first. */
const REMAINING = ['run_queue', 'run_lease', 'run_checkpoint', 'previous_run', 'sync_job_run', 'sync_job', 'webhook']

/**
 * Deletes what is left of an environment once its installations are gone: jobs, webhooks, runs and what waits.
 *
 * A holder of a lease finds it lost and ends.
 */
export async function deleteRemainsOfEnvironment(tx: Tx, environmentId: string): Promise<void> {
  for (const table of REMAINING) await execute(tx, `delete from ${table} where environment_id = ?`, [environmentId])
}
