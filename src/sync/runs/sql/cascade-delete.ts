import { type Db, deleteBatchOfEnvironment, execute, query } from '../../../foundation/database/index.ts'
import { deleteMissedTicks } from './tick.ts'

/** The column that names the owner of triggers. */
export type TriggerOwner = 'sync_job_id' | 'integrated_account_id' | 'webhook_id'

/**
 * Deletes all triggers of a job, account or webhook, with their schedules (by foreign key), incremental state and missed
 * ticks; returns how many. Rides on the index that begins with the environment and the owner.
 */
export async function deleteTriggersOf(
  tx: Db,
  environmentId: string,
  owner: TriggerOwner,
  ownerId: string,
): Promise<number> {
  const deleted = await query<{ readonly id: string }>(
    tx,
    `with deleted as (
       delete from sync_job_cron_trigger where environment_id = :environmentId and ${owner} = :ownerId returning *
     ), previous as (
       delete from previous_run p using deleted d where p.environment_id = d.environment_id
         and p.sync_job_id = d.sync_job_id and p.integrated_account_id = d.integrated_account_id and p.trigger_id = d.id
     )
     select id from deleted`,
    { environmentId, ownerId },
  )
  await deleteMissedTicks(
    tx,
    deleted.map(({ id }) => id),
  )
  return deleted.length
}

/** Requests all running runs of the account to stop at their next page. Rides on run_lease_account. */
async function stopRunsOfAccount(tx: Db, environmentId: string, integratedAccountId: string): Promise<void> {
  await execute(
    tx,
    `update run_lease set stop_requested_at = coalesce(stop_requested_at, now())
     where integrated_account_id = :integratedAccountId and environment_id = :environmentId`,
    { integratedAccountId, environmentId },
  )
}

/** The same for all accounts of installations. Few runs run at a time. */
async function stopRunsOfInstallations(tx: Db, ids: readonly string[]): Promise<void> {
  await execute(
    tx,
    `update run_lease lease set stop_requested_at = coalesce(stop_requested_at, now()) from integrated_account account
     where account.environment_id = lease.environment_id and account.id = lease.integrated_account_id
       and account.environment_integration_id = any(:ids::uuid[])`,
    { ids },
  )
}

/** What becomes of triggers and runs of what is deleted: triggers are deleted, active runs of accounts stop at their next page. */
export const triggerCascade = {
  async deleteByAccount(tx: Db, environmentId: string, integratedAccountId: string): Promise<void> {
    await deleteTriggersOf(tx, environmentId, 'integrated_account_id', integratedAccountId)
    await stopRunsOfAccount(tx, environmentId, integratedAccountId)
  },
  stopByInstallations: stopRunsOfInstallations,
  async deleteByWebhook(tx: Db, environmentId: string, webhookId: string): Promise<void> {
    await deleteTriggersOf(tx, environmentId, 'webhook_id', webhookId)
  },
}

/** Tables of an environment that nothing else empties, children first. */
const REMAINING = ['run_queue', 'run_lease', 'run_checkpoint', 'previous_run', 'sync_job_run', 'sync_job', 'webhook']

/**
 * Deletes a batch of the rest of an environment after its installations: jobs, webhooks, runs and their queue; returns whether
 * there is no more. Holders of leases find them lost.
 */
export async function deleteRemainsOfEnvironment(tx: Db, environmentId: string): Promise<boolean> {
  return await deleteBatchOfEnvironment(tx, REMAINING, environmentId)
}
