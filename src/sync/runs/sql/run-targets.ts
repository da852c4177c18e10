import { type Db, queryOne } from '../../../foundation/database/index.ts'
import type { JsonObject } from '../../../foundation/json/index.ts'
import type { ErrorHandling } from '../run.ts'

/** The rows that a run or trigger refers to; columns of one that the environment does not have are null. */
export interface RunReferenceRow {
  /** The database's clock. */
  readonly now: Date
  readonly jobIntegrationName: string | null
  readonly jobResources: readonly JsonObject[] | null
  readonly jobArgsSchema: JsonObject | null
  readonly jobArgsValidation: string | null
  readonly jobErrorHandling: ErrorHandling | null
  readonly accountStatus: string | null
  readonly accountRegion: string | null
  readonly accountIntegrationName: string | null
  readonly isIntegrationEnabled: boolean | null
  readonly hasWebhook: boolean
}

/** A job, an account with its installation, and a webhook, in one round trip. Rides on five primary keys. */
export async function findRunReferences(
  tx: Db,
  environmentId: string,
  ids: { readonly syncJobId: string; readonly integratedAccountId: string; readonly webhookId: string | null },
): Promise<RunReferenceRow> {
  const found = await queryOne<RunReferenceRow>(
    tx,
    `select clock_timestamp()::timestamptz(3) as now, j.integration_name as job_integration_name,
       j.resources as job_resources, j.args_schema as job_args_schema, j.args_validation as job_args_validation,
       j.error_handling as job_error_handling, a.status as account_status, a.region as account_region,
       i.name as account_integration_name, e.is_enabled as is_integration_enabled, w.id is not null as has_webhook
     from (select :environmentId::uuid as environment_id) v
     left join sync_job j on j.environment_id = v.environment_id and j.id = :syncJobId
     left join integrated_account a on a.environment_id = v.environment_id and a.id = :integratedAccountId
     left join environment_integration e on e.environment_id = a.environment_id and e.id = a.environment_integration_id
       and not e.is_hidden
     left join integration i on i.id = e.integration_id
     left join webhook w on w.environment_id = v.environment_id and w.id = :webhookId`,
    { environmentId, ...ids },
  )
  if (found === undefined) throw new Error('a select of one row returned none')
  return found
}

/** Whether an account may run; undefined when the environment has no such account. Two primary keys. */
export async function findAccountState(
  tx: Db,
  environmentId: string,
  integratedAccountId: string,
): Promise<{ readonly accountStatus: string; readonly isIntegrationEnabled: boolean } | undefined> {
  return await queryOne(
    tx,
    `select a.status as account_status, e.is_enabled as is_integration_enabled from integrated_account a
     join environment_integration e on e.environment_id = a.environment_id and e.id = a.environment_integration_id
       and not e.is_hidden
     where a.environment_id = :environmentId and a.id = :integratedAccountId`,
    { environmentId, integratedAccountId },
  )
}

/** Whether the environment has the webhook. */
export async function hasWebhook(tx: Db, environmentId: string, id: string): Promise<boolean> {
  const found = await tx('webhook').where({ environment_id: environmentId, id }).first('id')
  return found !== undefined
}
