import { type Db, execute, jsonb, nextVersion, query, queryOne, type Tx } from '../../../foundation/database/index.ts'
import type { JsonObject } from '../../../foundation/json/index.ts'
import { isKeptSql } from '../../../platform/accounts/index.ts'
import type { ErrorHandling, RunDestination, RunStatus } from '../../runs/run.ts'
import { type DestinationColumns, destinationColumns, withDestination } from '../../runs/sql/run.ts'
import { deleteMissedTicks } from '../../runs/sql/tick.ts'

/** A trigger with the state of its schedule. */
export interface TriggerRecord {
  readonly id: string
  readonly environmentId: string
  readonly syncJobId: string
  readonly integratedAccountId: string
  readonly cronExpression: string
  readonly destination: RunDestination
  readonly args: JsonObject
  /** What its runs read: its own, or those of the job. */
  readonly resources: readonly JsonObject[]
  readonly areResourcesInherited: boolean
  /** `null`: the job's. */
  readonly errorHandling: ErrorHandling | null
  readonly createdAt: Date
  readonly updatedAt: Date
  /** Counts writes of the settings, not ticks. */
  readonly version: number
  readonly isPaused: boolean
  /** `null` while paused, or when the expression cannot be evaluated (`error`). */
  readonly nextRunAt: Date | null
  readonly lastRunAt: Date | null
  readonly lastRunStatus: RunStatus | null
  readonly error: string | null
}

/** A trigger to be stored, with its first tick. */
export interface NewTrigger {
  readonly id: string
  readonly environmentId: string
  readonly syncJobId: string
  readonly integratedAccountId: string
  readonly cronExpression: string
  readonly destination: RunDestination
  readonly args: JsonObject
  /** Empty: the job's. */
  readonly resources: readonly JsonObject[]
  readonly errorHandling: ErrorHandling | null
  readonly shard: number
  readonly region: string
  readonly nextFireAt: Date
}

/** Which triggers to list. */
export interface TriggerFilter {
  readonly syncJobId?: string | undefined
  readonly integratedAccountId?: string | undefined
}

/** Columns of a trigger `t` and its schedule `s`; the lease on its last run alone tells whether that is running. */
const COLUMNS = `t.id, t.environment_id, t.sync_job_id,
  t.integrated_account_id, t.cron_expression, t.daemon_group_key as group_key, t.webhook_id, t.args,
  coalesce(t.resources,
    (select j.resources from sync_job j where j.environment_id = t.environment_id and j.id = t.sync_job_id)) as resources,
  t.resources is null as are_resources_inherited,
  t.error_handling, t.created_at, t.updated_at, t.version, s.is_paused, s.next_fire_at as next_run_at,
  s.last_scheduled_for as last_run_at, s.error,
  coalesce((select 'running' from run_lease l where l.run_id = s.last_run_id), s.last_run_status) as last_run_status`

type TriggerRow = Omit<TriggerRecord, 'destination'> & DestinationColumns

/** Stores a trigger and its schedule in one statement. */
export async function insertTrigger(tx: Db, trigger: NewTrigger): Promise<TriggerRecord> {
  const { destination, args, resources, ...columns } = trigger
  const inserted = await queryOne<TriggerRow>(
    tx,
    `with t as (
       insert into sync_job_cron_trigger (environment_id, id, sync_job_id, integrated_account_id, cron_expression,
         daemon_group_key, webhook_id, args, resources, error_handling)
       values (:environmentId, :id, :syncJobId, :integratedAccountId, :cronExpression, :groupKey, :webhookId, :args::json,
         :resources::json, :errorHandling) returning *
     ), s as (
       insert into trigger_schedule (trigger_id, environment_id, shard, region, cron_expression, next_fire_at)
       select id, environment_id, :shard, :region, cron_expression, :nextFireAt from t returning *
     )
     select ${COLUMNS} from t join s on s.trigger_id = t.id`,
    {
      ...columns,
      ...destinationColumns(destination),
      args: jsonb(args),
      resources: resources.length === 0 ? null : jsonb(resources),
    },
  )
  if (inserted === undefined) throw new Error('an insert returned no row')
  return withDestination(inserted)
}

/** SQL: triggers of accounts whose deletion goes on are not found. */
const IS_KEPT = isKeptSql('t', 'integrated_account_id')
const FIND = `select ${COLUMNS} from sync_job_cron_trigger t join trigger_schedule s on s.trigger_id = t.id
  where t.environment_id = :environmentId and t.id = :id and ${IS_KEPT}`

/** One trigger. Three primary keys. */
export async function findTrigger(tx: Db, environmentId: string, id: string): Promise<TriggerRecord | undefined> {
  const found = await queryOne<TriggerRow>(tx, FIND, { environmentId, id })
  return found && withDestination(found)
}

/**
 * Like `findTrigger`, and locks the trigger until the transaction ends. Lock order: the trigger before its schedule; ticks lock
 * the schedule only.
 */
export async function lockTrigger(tx: Tx, environmentId: string, id: string): Promise<TriggerRecord | undefined> {
  const found = await queryOne<TriggerRow>(tx, `${FIND} for no key update of t`, { environmentId, id })
  return found && withDestination(found)
}

/** Triggers of the environment below an id (all when undefined), newest first. Rides on the primary key or the filter's index. */
export async function listTriggers(
  tx: Db,
  environmentId: string,
  filter: TriggerFilter,
  before: string | undefined,
  limit: number,
): Promise<readonly TriggerRecord[]> {
  const { syncJobId = null, integratedAccountId = null } = filter
  const conditions = [
    't.environment_id = :environmentId',
    IS_KEPT,
    syncJobId && 't.sync_job_id = :syncJobId',
    integratedAccountId && 't.integrated_account_id = :integratedAccountId',
    before && 't.id < :before',
  ]
  const found = await query<TriggerRow>(
    tx,
    `select ${COLUMNS} from sync_job_cron_trigger t join trigger_schedule s on s.trigger_id = t.id
     where ${conditions.filter(Boolean).join(' and ')} order by t.id desc limit :limit`,
    { environmentId, syncJobId, integratedAccountId, before: before ?? null, limit },
  )
  return found.map(withDestination)
}

/** @param webhook a condition on the webhook, for a destination that is one */
const updateDestinationSql = (webhook: string) => `update sync_job_cron_trigger t
  set daemon_group_key = :groupKey, webhook_id = :webhookId, updated_at = now(), version = version + 1
  from trigger_schedule s
  where t.environment_id = :environmentId and t.id = :id and s.trigger_id = t.id
    and t.version = coalesce(:version, t.version) and t.cron_expression = coalesce(:cronExpression, t.cron_expression)
    and ${IS_KEPT} ${webhook}
  returning ${COLUMNS}`
const UPDATE_GROUP = updateDestinationSql('')
const UPDATE_WEBHOOK = updateDestinationSql(
  'and exists (select from webhook w where w.environment_id = t.environment_id and w.id = :webhookId)',
)

/**
 * Replaces the destination in one statement; every rule is in its WHERE. Rides on four primary keys.
 *
 * @returns undefined when the trigger does not exist, its version or expression is not the given one, or the webhook is not
 * one of the environment: the caller finds out which, which costs the common case nothing
 */
export async function updateTriggerDestination(
  tx: Db,
  environmentId: string,
  id: string,
  destination: RunDestination,
  expected: { readonly version: number | undefined; readonly cronExpression: string | undefined },
): Promise<TriggerRecord | undefined> {
  const columns = destinationColumns(destination)
  const updated = await queryOne<TriggerRow>(tx, columns.webhookId === null ? UPDATE_GROUP : UPDATE_WEBHOOK, {
    ...columns,
    environmentId,
    id,
    version: expected.version ?? null,
    cronExpression: expected.cronExpression ?? null,
  })
  return updated && withDestination(updated)
}

/** Writes the settings of a locked trigger. */
export async function updateTriggerSettings(
  tx: Db,
  environmentId: string,
  id: string,
  settings: Pick<TriggerRecord, 'cronExpression' | 'destination' | 'errorHandling' | 'args'> & {
    /** `null`: the job's. Absent: unchanged. */
    readonly resources: readonly JsonObject[] | null | undefined
  },
): Promise<void> {
  const { cronExpression, destination, errorHandling, args, resources } = settings
  const { groupKey, webhookId } = destinationColumns(destination)
  await tx('sync_job_cron_trigger')
    .where({ environment_id: environmentId, id })
    .update({
      cron_expression: cronExpression,
      daemon_group_key: groupKey,
      webhook_id: webhookId,
      error_handling: errorHandling,
      args: jsonb(args),
      resources: resources && jsonb(resources),
      ...nextVersion(tx),
    })
}

/** Deletes a trigger with its schedule, incremental state and missed ticks; returns whether it existed in that version. */
export async function deleteTrigger(
  tx: Db,
  environmentId: string,
  id: string,
  version: number | undefined,
): Promise<boolean> {
  const deleted = await execute(
    tx,
    `with deleted as (
       delete from sync_job_cron_trigger t
       where environment_id = :environmentId and id = :id and version = coalesce(:version, version) and ${IS_KEPT} returning *
     ), previous as (
       delete from previous_run p using deleted d where p.environment_id = d.environment_id
         and p.sync_job_id = d.sync_job_id and p.integrated_account_id = d.integrated_account_id and p.trigger_id = d.id
     )
     select from deleted`,
    { environmentId, id, version: version ?? null },
  )
  if (deleted > 0) await deleteMissedTicks(tx, [id])
  return deleted > 0
}

/** A schedule whose row is locked. */
export interface LockedSchedule {
  readonly isPaused: boolean
  readonly error: string | null
  readonly nextFireAt: Date | null
  /** The database's clock after the lock was granted. */
  readonly now: Date
}

/** Locks the schedule's row; waits for a tick that is being fired from it. */
export async function lockSchedule(tx: Tx, triggerId: string): Promise<LockedSchedule | undefined> {
  return await queryOne(
    tx,
    `with locked as (
       select is_paused, error, next_fire_at from trigger_schedule where trigger_id = :triggerId for update
     )
     select is_paused, error, next_fire_at,
       clock_timestamp()::timestamptz(3) as now from locked`,
    { triggerId },
  )
}

/** New values of a schedule. */
export interface ScheduleChange {
  readonly cronExpression: string
  readonly isPaused: boolean
  readonly nextFireAt: Date | null
}

/** Writes a locked schedule and clears the error that has suspended it. */
export async function updateSchedule(tx: Db, triggerId: string, change: ScheduleChange): Promise<void> {
  await tx('trigger_schedule').where({ trigger_id: triggerId }).update({
    cron_expression: change.cronExpression,
    is_paused: change.isPaused,
    next_fire_at: change.nextFireAt,
    error: null,
  })
}

/** Makes a run the latest one of its trigger. */
export async function updateLastRun(
  tx: Db,
  triggerId: string,
  run: { readonly id: string; readonly scheduledFor: Date; readonly status: RunStatus },
): Promise<void> {
  await tx('trigger_schedule').where({ trigger_id: triggerId }).update({
    last_scheduled_for: run.scheduledFor,
    last_run_id: run.id,
    last_run_status: run.status,
  })
}

/** A trigger whose schedule was just suspended. */
export interface SuspendedSchedule {
  readonly environmentId: string
  readonly syncJobId: string
  readonly integratedAccountId: string
}

/**
 * Suspends a schedule with the reason, unless it has changed since the tick was read: that gave it another chance.
 *
 * @returns undefined when it was not suspended
 */
export async function suspendSchedule(
  tx: Db,
  triggerId: string,
  dueAt: Date,
  error: string,
): Promise<SuspendedSchedule | undefined> {
  return await queryOne(
    tx,
    `update trigger_schedule s set next_fire_at = null, error = :error from sync_job_cron_trigger t
     where s.trigger_id = :triggerId and s.next_fire_at = :dueAt and t.environment_id = s.environment_id and t.id = s.trigger_id
     returning t.environment_id, t.sync_job_id, t.integrated_account_id`,
    { triggerId, dueAt, error },
  )
}
