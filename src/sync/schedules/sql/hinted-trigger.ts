import { type Db, query, queryOne } from '../../../foundation/database/index.ts'

/** What of an account has changed at the third party, as its webhook says. */
export interface HintedResource {
  readonly environmentId: string
  readonly integratedAccountId: string
  /** As in the resources of a job. */
  readonly resource: string
}

/**
 * Ids of the triggers of an account that are not paused and read a resource: in their own resources, or where they have none in
 * those of their job. Uses the index of triggers by account.
 */
export async function findTriggersOfResource(tx: Db, hint: HintedResource): Promise<readonly string[]> {
  const found = await query<{ readonly id: string }>(
    tx,
    `select t.id from sync_job_cron_trigger t
     join trigger_schedule s on s.trigger_id = t.id
     join sync_job j on j.environment_id = t.environment_id and j.id = t.sync_job_id
     where t.environment_id = :environmentId and t.integrated_account_id = :integratedAccountId and not s.is_paused
       and exists (select from json_array_elements(coalesce(t.resources, j.resources)) node
         where node ->> 'resource' = :resource)
     order by t.id`,
    { ...hint },
  )
  return found.map(({ id }) => id)
}

/** Whether a run of the trigger waits that has read nothing yet. Uses run_queue_of_account. */
export async function hasUnstartedRun(tx: Db, integratedAccountId: string, triggerId: string): Promise<boolean> {
  const found = await queryOne(
    tx,
    `select from run_queue q join sync_job_run r on r.id = q.run_id and r.scheduled_for = q.scheduled_for
     where q.integrated_account_id = :integratedAccountId and q.trigger_id = :triggerId and r.started_at is null limit 1`,
    { integratedAccountId, triggerId },
  )
  return found !== undefined
}
