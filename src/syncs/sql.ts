import type { Json, JsonObject } from '../base/index.ts'
import { execute, jsonb, query, queryOne, type Tx } from '../database/index.ts'
import type { ErrorHandling } from '../runs/index.ts'

/** A sync job as it is stored. */
export interface SyncJobRecord {
  readonly id: string
  readonly environmentId: string
  readonly label: string
  /** Name of an integration; no reference, so that a job may exist before its integration is installed. */
  readonly integrationName: string
  /** Checked sync resources, in the user's order. */
  readonly resources: readonly Json[]
  /** `{}`: any arguments. */
  readonly argsSchema: JsonObject
  /** JSONata; empty: no check. */
  readonly argsValidation: string
  /** Of runs whose trigger or caller says nothing else. */
  readonly errorHandling: ErrorHandling
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly version: number
}

/** A job to be stored. */
export type NewSyncJob = Omit<SyncJobRecord, 'createdAt' | 'updatedAt' | 'version'>

/** What may change; an absent field keeps its value. */
export interface SyncJobChange {
  readonly label?: string | undefined
  readonly resources?: readonly Json[] | undefined
  readonly argsSchema?: JsonObject | undefined
  readonly argsValidation?: string | undefined
  readonly errorHandling?: ErrorHandling | undefined
}

const COLUMNS = `id, environment_id as "environmentId", label, integration_name as "integrationName", resources,
  args_schema as "argsSchema", args_validation as "argsValidation", error_handling as "errorHandling",
  created_at as "createdAt", updated_at as "updatedAt", version`

/** Stores a job. */
export async function insertSyncJob(tx: Tx, job: NewSyncJob): Promise<SyncJobRecord> {
  const inserted = await queryOne<SyncJobRecord>(
    tx,
    `insert into sync_job
       (environment_id, id, label, integration_name, resources, args_schema, args_validation, error_handling)
     values (?, ?, ?, ?, ?::jsonb, ?::jsonb, ?, ?) returning ${COLUMNS}`,
    [
      job.environmentId,
      job.id,
      job.label,
      job.integrationName,
      jsonb(job.resources),
      jsonb(job.argsSchema),
      job.argsValidation,
      job.errorHandling,
    ],
  )
  if (inserted === undefined) throw new Error('an insert returned no row')
  return inserted
}

/** Rides on the primary key. */
export async function findSyncJob(tx: Tx, environmentId: string, id: string): Promise<SyncJobRecord | undefined> {
  return await queryOne(tx, `select ${COLUMNS} from sync_job where environment_id = ? and id = ?`, [environmentId, id])
}

/** Like `findSyncJob`, and holds the row until the transaction ends. */
export async function lockSyncJob(tx: Tx, environmentId: string, id: string): Promise<SyncJobRecord | undefined> {
  return await queryOne(tx, `select ${COLUMNS} from sync_job where environment_id = ? and id = ? for update`, [
    environmentId,
    id,
  ])
}

/** Jobs of the environment below `before` (all when undefined), newest first. Rides on the primary key. */
export async function listSyncJobRows(
  tx: Tx,
  environmentId: string,
  before: string | undefined,
  limit: number,
): Promise<readonly SyncJobRecord[]> {
  return await query(
    tx,
    `select ${COLUMNS} from sync_job where environment_id = ? and (?::uuid is null or id < ?) order by id desc limit ?`,
    [environmentId, before ?? null, before ?? null, limit],
  )
}

/** Changes the given fields; `undefined` when there is no such job or its version is not the given one. */
export async function updateSyncJobRow(
  tx: Tx,
  environmentId: string,
  id: string,
  change: SyncJobChange,
  version: number | undefined,
): Promise<SyncJobRecord | undefined> {
  return await queryOne(
    tx,
    `update sync_job set label = coalesce(?, label), resources = coalesce(?::jsonb, resources),
       args_schema = coalesce(?::jsonb, args_schema), args_validation = coalesce(?, args_validation),
       error_handling = coalesce(?, error_handling), updated_at = now(), version = version + 1
     where environment_id = ? and id = ? and version = coalesce(?, version) returning ${COLUMNS}`,
    [
      change.label ?? null,
      change.resources === undefined ? null : jsonb(change.resources),
      change.argsSchema === undefined ? null : jsonb(change.argsSchema),
      change.argsValidation ?? null,
      change.errorHandling ?? null,
      environmentId,
      id,
      version ?? null,
    ],
  )
}

/**
 * Deletes a job and where its syncs stood; returns whether it was there in the given version.
 *
 * Breaks the foreign key of triggers while some run it.
 */
export async function deleteSyncJobRow(
  tx: Tx,
  environmentId: string,
  id: string,
  version: number | undefined,
): Promise<boolean> {
  const deleted = await execute(
    tx,
    `with gone as (
       delete from sync_job where environment_id = ? and id = ? and version = coalesce(?, version)
       returning environment_id, id
     ), forgotten as (
       delete from previous_run p using gone where p.environment_id = gone.environment_id and p.sync_job_id = gone.id
     )
     select from gone`,
    [environmentId, id, version ?? null],
  )
  return deleted > 0
}

/**
 * Config and override of the environment's installations of integrations with that name: one, unless a team shares an
 * integration that is called like an own one. Rides on environment_integration_pair; an environment installs few.
 */
export async function listInstalledConfigs(
  tx: Tx,
  environmentId: string,
  integrationName: string,
): Promise<readonly { readonly config: JsonObject; readonly override: JsonObject }[]> {
  return await query(
    tx,
    `select integration.config, environment_integration.override
     from environment_integration join integration on integration.id = environment_integration.integration_id
     where environment_integration.environment_id = ? and integration.name = ?
     order by environment_integration.id`,
    [environmentId, integrationName],
  )
}
