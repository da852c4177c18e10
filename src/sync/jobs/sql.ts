import {
  type Db,
  execute,
  jsonb,
  newestFirst,
  nextVersion,
  type Tx,
  whereVersion,
} from '../../foundation/database/index.ts'
import type { Json, JsonObject } from '../../foundation/json/index.ts'
import type { ErrorHandling } from '../runs/run.ts'

/** A sync job as it is stored. */
export interface SyncJobRecord {
  readonly id: string
  readonly environmentId: string
  readonly label: string
  /** Name of an integration, not a reference: a job may exist before its integration is installed. */
  readonly integrationName: string
  /** Checked sync resources, in the user's order. */
  readonly resources: readonly Json[]
  /** `{}`: any arguments. */
  readonly argsSchema: JsonObject
  /** JSONata; empty: no check. */
  readonly argsValidation: string
  /** Default of the runs of this job. */
  readonly errorHandling: ErrorHandling
  /** For how long a run goes on trying while the third party, or where the records go, is unavailable; see `OutageLimit`. */
  readonly giveUpAfterSeconds: number
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly version: number
}

/** A job to be stored. */
export type NewSyncJob = Omit<SyncJobRecord, 'createdAt' | 'updatedAt' | 'version'>

/** A change of a job; an absent field keeps its value. */
export interface SyncJobChange {
  readonly label?: string | undefined
  readonly resources?: readonly Json[] | undefined
  readonly argsSchema?: JsonObject | undefined
  readonly argsValidation?: string | undefined
  readonly errorHandling?: ErrorHandling | undefined
  readonly giveUpAfterSeconds?: number | undefined
}

const COLUMNS = [
  'id',
  'environment_id',
  'label',
  'integration_name',
  'resources',
  'args_schema',
  'args_validation',
  'error_handling',
  'give_up_after_seconds',
  'created_at',
  'updated_at',
  'version',
]

/** Stores a job. */
export async function insertSyncJob(tx: Db, job: NewSyncJob): Promise<SyncJobRecord> {
  const [inserted] = await tx('sync_job')
    .insert({
      environment_id: job.environmentId,
      id: job.id,
      label: job.label,
      integration_name: job.integrationName,
      resources: jsonb(job.resources),
      args_schema: jsonb(job.argsSchema),
      args_validation: job.argsValidation,
      error_handling: job.errorHandling,
      give_up_after_seconds: job.giveUpAfterSeconds,
    })
    .returning<SyncJobRecord[]>(COLUMNS)
  if (inserted === undefined) throw new Error('an insert returned no row')
  return inserted
}

/** Finds a job. Uses the primary key. */
export async function findSyncJob(tx: Db, environmentId: string, id: string): Promise<SyncJobRecord | undefined> {
  return await tx('sync_job').where({ environment_id: environmentId, id }).first<SyncJobRecord | undefined>(COLUMNS)
}

/** Finds a job and locks its row until the transaction ends. Uses the primary key. */
export async function lockSyncJob(tx: Tx, environmentId: string, id: string): Promise<SyncJobRecord | undefined> {
  return await tx('sync_job')
    .where({ environment_id: environmentId, id })
    .forUpdate()
    .first<SyncJobRecord | undefined>(COLUMNS)
}

/** Jobs of the environment below the id `before`, newest first. Uses the primary key. */
export async function listSyncJobRows(
  tx: Db,
  environmentId: string,
  before: string | undefined,
  limit: number,
): Promise<readonly SyncJobRecord[]> {
  return await tx('sync_job')
    .where({ environment_id: environmentId })
    .modify(newestFirst, { before, limit })
    .select<SyncJobRecord[]>(COLUMNS)
}

/** Changes the given fields; `undefined` when there is no such job or its version is not the given one. */
export async function updateSyncJobRow(
  tx: Db,
  environmentId: string,
  id: string,
  change: SyncJobChange,
  version: number | undefined,
): Promise<SyncJobRecord | undefined> {
  const { label, resources, argsSchema, argsValidation, errorHandling, giveUpAfterSeconds } = change
  const [updated] = await tx('sync_job')
    .where({ environment_id: environmentId, id })
    .modify(whereVersion, version)
    .update({
      label,
      resources: resources === undefined ? undefined : jsonb(resources),
      args_schema: argsSchema === undefined ? undefined : jsonb(argsSchema),
      args_validation: argsValidation,
      error_handling: errorHandling,
      give_up_after_seconds: giveUpAfterSeconds,
      ...nextVersion(tx),
    })
    .returning<SyncJobRecord[]>(COLUMNS)
  return updated
}

/**
 * Deletes a job with the dates of its incremental syncs; returns whether it was there in the given version.
 *
 * Violates the foreign key of triggers while some run it.
 */
export async function deleteSyncJobRow(
  tx: Db,
  environmentId: string,
  id: string,
  version: number | undefined,
): Promise<boolean> {
  const deleted = await execute(
    tx,
    `with deleted_job as (
       delete from sync_job
       where environment_id = :environmentId and id = :id and version = coalesce(:version, version)
       returning environment_id, id
     ), deleted_dates as (
       delete from previous_run p using deleted_job j
       where p.environment_id = j.environment_id and p.sync_job_id = j.id
     )
     select from deleted_job`,
    { environmentId, id, version: version ?? null },
  )
  return deleted > 0
}

/** Names of the integrations that an environment has installed. Uses environment_integration_pair; an environment installs few. */
export async function listInstalledNames(tx: Db, environmentId: string): Promise<readonly string[]> {
  return await tx('environment_integration')
    .join('integration', 'integration.id', 'environment_integration.integration_id')
    .where({ 'environment_integration.environment_id': environmentId, is_hidden: false })
    .distinct()
    .pluck<string[]>('integration.name')
}

/**
 * Config and override of the environment's installations of integrations with that name: one, unless another team shares an
 * integration of the same name. Uses environment_integration_pair; an environment installs few.
 */
export async function listInstalledConfigs(
  tx: Db,
  environmentId: string,
  integrationName: string,
): Promise<readonly { readonly config: JsonObject; readonly override: JsonObject }[]> {
  return await tx('environment_integration')
    .join('integration', 'integration.id', 'environment_integration.integration_id')
    .where({
      'environment_integration.environment_id': environmentId,
      'integration.name': integrationName,
      is_hidden: false,
    })
    .orderBy('environment_integration.id')
    .select<{ config: JsonObject; override: JsonObject }[]>('integration.config', 'environment_integration.override')
}
