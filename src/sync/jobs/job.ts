import { resolveConfig } from '../../engine/definitions/index.ts'
import { validateExpression } from '../../engine/expressions/index.ts'
import {
  type Clock,
  etagMismatch,
  type FailureReason,
  invalidFields,
  newId,
  notFound,
  suggest,
  type Violation,
} from '../../foundation/base/index.ts'
import { type Db, mapForeignKeyToInUse, type Tx } from '../../foundation/database/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import { type ErrorHandling, GIVE_UP_AFTER_SECONDS_DEFAULT } from '../runs/run.ts'
import { deleteTriggersOf } from '../runs/sql/cascade-delete.ts'
import { checkArgsSchema, listArguments, mayBeList } from './args.ts'
import { checkAgainstDefinition, checkRequiredInput, checkResources, methodNamesOf } from './check-resources.ts'
import { readSyncResources } from './resource.ts'
import {
  deleteSyncJobRow,
  findSyncJob,
  insertSyncJob,
  listInstalledConfigs,
  listInstalledNames,
  listSyncJobRows,
  lockSyncJob,
  type SyncJobChange,
  type SyncJobRecord,
  updateSyncJobRow,
} from './sql.ts'
import { findUnifiedViolations, type MappingFinder } from './unified-nodes.ts'

/** A new sync job. */
export interface SyncJobInput {
  readonly label: string
  /** Need not be installed yet. */
  readonly integrationName: string
  readonly resources: readonly JsonObject[]
  /** Absent: any arguments. */
  readonly argsSchema?: JsonObject | undefined
  /** JSONata. Absent or empty: no check. */
  readonly argsValidation?: string | undefined
  /** Absent: `ignore`. */
  readonly errorHandling?: ErrorHandling | undefined
  /** Absent: a day. */
  readonly giveUpAfterSeconds?: number | undefined
}

/** The fields of a job that are validated together. */
type CheckedJob = Pick<SyncJobRecord, 'integrationName' | 'resources' | 'argsSchema' | 'argsValidation'>

/**
 * Stores a job whose resources form a plan. When the integration is installed, its resources and methods must exist too.
 *
 * @throws Failure RESOURCES_INVALID, INVALID_FIELD (args_schema), EXPRESSION_FAILED (args_validation), with every
 *   violation; nothing is stored then
 */
export async function createSyncJob(
  deps: { readonly clock: Clock; readonly mappings: MappingFinder },
  tx: Db,
  environmentId: string,
  input: SyncJobInput,
): Promise<SyncJobRecord> {
  const { label, integrationName, resources, argsSchema = {}, argsValidation = '' } = input
  const { errorHandling = 'ignore', giveUpAfterSeconds = GIVE_UP_AFTER_SECONDS_DEFAULT } = input
  await assertValidJob(deps.mappings, tx, environmentId, { integrationName, resources, argsSchema, argsValidation })
  const id = newId(deps.clock.now().getTime())
  return await insertSyncJob(tx, {
    id,
    environmentId,
    label,
    integrationName,
    resources: readSyncResources(resources),
    argsSchema,
    argsValidation,
    errorHandling,
    giveUpAfterSeconds,
  })
}

/** @throws Failure RESOURCE_NOT_FOUND */
export async function getSyncJob(tx: Db, environmentId: string, id: string): Promise<SyncJobRecord> {
  return (await findSyncJob(tx, environmentId, id)) ?? jobNotFound(id)
}

/** At most `limit` jobs below the id `before`, newest first. */
export async function listSyncJobs(
  tx: Db,
  environmentId: string,
  page: { readonly before: string | undefined; readonly limit: number },
): Promise<readonly SyncJobRecord[]> {
  return await listSyncJobRows(tx, environmentId, page.before, page.limit)
}

/**
 * Changes the given fields; without any the job is returned unchanged. Needs a transaction: the row is locked while stored and
 * new fields are validated together.
 *
 * @param version expected version (etag); absent: any
 * @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH, and those of `createSyncJob`
 */
export async function updateSyncJob(
  { mappings }: { readonly mappings: MappingFinder },
  tx: Tx,
  environmentId: string,
  input: Omit<SyncJobChange, 'resources'> & {
    readonly id: string
    readonly version?: number | undefined
    readonly resources?: readonly JsonObject[] | undefined
  },
): Promise<SyncJobRecord> {
  const { id, version, ...change } = input
  const stored = (await lockSyncJob(tx, environmentId, id)) ?? jobNotFound(id)
  if (version !== undefined && version !== stored.version) throw etagMismatch('sync_job', id)
  if (Object.values(change).every((value) => value === undefined)) return stored
  await assertValidJob(mappings, tx, environmentId, {
    integrationName: stored.integrationName,
    resources: change.resources ?? stored.resources,
    argsSchema: change.argsSchema ?? stored.argsSchema,
    argsValidation: change.argsValidation ?? stored.argsValidation,
  })
  const resources = change.resources === undefined ? undefined : readSyncResources(change.resources)
  return (await updateSyncJobRow(tx, environmentId, id, { ...change, resources }, version)) ?? jobNotFound(id)
}

/**
 * Deletes a job, and with `force` the triggers that run it. Existing runs keep their resources.
 *
 * @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH, RESOURCE_IN_USE
 */
export async function deleteSyncJob(
  tx: Tx,
  environmentId: string,
  input: { readonly id: string; readonly force?: boolean; readonly version?: number | undefined },
): Promise<void> {
  const { id, version, force = false } = input
  // Under the lock no trigger can be created for it.
  if (force && (await lockSyncJob(tx, environmentId, id)) !== undefined)
    await deleteTriggersOf(tx, environmentId, 'sync_job_id', id)
  if (await deleteUnlessUsed(tx, environmentId, id, version)) return
  await getSyncJob(tx, environmentId, id)
  throw etagMismatch('sync_job', id)
}

/**
 * The violations of resources that a trigger sets instead of those of its job: no valid plan, or not in the installed
 * definition and its mappings. For an unknown job only the plan is checked.
 */
export async function checkTriggerResources(
  mappings: MappingFinder,
  tx: Db,
  environmentId: string,
  syncJobId: string,
  resources: readonly JsonObject[],
): Promise<readonly Violation[]> {
  const job = await findSyncJob(tx, environmentId, syncJobId)
  if (job === undefined) return checkResources(readSyncResources(resources))
  return await findResourceViolations(mappings, tx, environmentId, { ...job, resources })
}

/**
 * What is doubtful about stored jobs, for each of them: that its integration is not installed. A job may be written before.
 *
 * @param jobs of the environment
 */
export async function findJobWarnings(
  tx: Db,
  environmentId: string,
  jobs: readonly Pick<SyncJobRecord, 'integrationName'>[],
): Promise<readonly (readonly Violation[])[]> {
  if (jobs.length === 0) return []
  const installed = await listInstalledNames(tx, environmentId)
  return jobs.map(({ integrationName }) => {
    if (installed.includes(integrationName)) return []
    const description = `${integrationName} is not installed in this environment, so that no account can run the job yet${suggest(integrationName, installed)}`
    return [{ field: 'integration_name', description, rule: 'integration.not_installed' }]
  })
}

/** Jobs that `findBrokenJobs` looks at, newest first. */
const CHECKED_JOBS_MAX = 1_000

/**
 * Jobs of an environment that read what the installed definition of their integration does not have (any more), or give no value
 * for what it requires (by now), with the violations of their resources: among the newest 1 000 jobs.
 */
export async function findBrokenJobs(
  tx: Db,
  environmentId: string,
  integrationName: string,
): Promise<readonly { readonly job: SyncJobRecord; readonly violations: readonly Violation[] }[]> {
  const [installed] = await listInstalledConfigs(tx, environmentId, integrationName)
  if (installed === undefined) return []
  const { config, override } = installed
  const offered = methodNamesOf(config, override)
  const resolved = resolveConfig(config, override).config
  const jobs = await listSyncJobRows(tx, environmentId, undefined, CHECKED_JOBS_MAX)
  return jobs
    .filter((job) => job.integrationName === integrationName)
    .map((job) => {
      const resources = readSyncResources(job.resources)
      return {
        job,
        violations: [...checkAgainstDefinition(resources, offered), ...checkRequiredInput(resources, resolved)],
      }
    })
    .filter(({ violations }) => violations.length > 0)
}

async function assertValidJob(mappings: MappingFinder, tx: Db, environmentId: string, job: CheckedJob): Promise<void> {
  const byReason: readonly (readonly [FailureReason, readonly Violation[]])[] = [
    ['RESOURCES_INVALID', await findResourceViolations(mappings, tx, environmentId, job)],
    ['INVALID_FIELD', checkArgsSchema(job.argsSchema)],
    ['EXPRESSION_FAILED', checkArgsValidation(job.argsValidation)],
  ]
  const [first] = byReason.filter(([, violations]) => violations.length > 0)
  if (first === undefined) return
  throw invalidFields(
    byReason.flatMap(([, violations]) => violations),
    first[0],
  )
}

async function findResourceViolations(
  mappings: MappingFinder,
  tx: Db,
  environmentId: string,
  { integrationName, argsSchema, resources: given }: Pick<CheckedJob, 'integrationName' | 'argsSchema' | 'resources'>,
): Promise<readonly Violation[]> {
  const resources = readSyncResources(given)
  const loops = resources.flatMap(({ loop_on }, index) => {
    if (loop_on === undefined || mayBeList(argsSchema, loop_on)) return []
    const description = `names ${loop_on}, which is no list in args_schema${suggest(loop_on, listArguments(argsSchema))}`
    return [{ field: `resources[${index}].loop_on`, description, rule: 'resources.loop_on' }]
  })
  const [installed] = await listInstalledConfigs(tx, environmentId, integrationName)
  const violations = [...checkResources(resources), ...loops]
  if (installed === undefined) return violations
  const { config, override } = installed
  return [
    ...violations,
    ...checkAgainstDefinition(resources, methodNamesOf(config, override)),
    ...checkRequiredInput(resources, resolveConfig(config, override).config),
    ...(await findUnifiedViolations(mappings, tx, { environmentId, integrationName }, resources)),
  ]
}

function checkArgsValidation(expression: string): Violation[] {
  if (expression === '') return []
  const parsed = validateExpression(expression)
  if (!('problem' in parsed)) return []
  const description = `is not a JSONata expression: ${parsed.problem}`
  return [{ field: 'args_validation', description, rule: 'expression.syntax' }]
}

async function deleteUnlessUsed(tx: Db, environmentId: string, id: string, version: number | undefined) {
  const why = 'triggers run this job: delete them first, or set force to delete them with it'
  return await mapForeignKeyToInUse({ type: 'sync_job', id, why }, () =>
    deleteSyncJobRow(tx, environmentId, id, version),
  )
}

function jobNotFound(id: string): never {
  throw notFound('sync_job', id)
}
