import type { JsonObject } from '../../base/index.ts'
import { execute, jsonb, query, queryOne, type SqlValue, type Tx } from '../../database/index.ts'
import {
  deleteMissedTicks,
  destinationColumns,
  destinationFromColumns,
  type ErrorHandling,
  type RunDestination,
  type RunStatus,
} from '../../runs/index.ts'

/** A trigger with what its schedule says. */
export interface TriggerRecord {
  readonly id: string
  readonly environmentId: string
  readonly syncJobId: string
  readonly integratedAccountId: string
  readonly cronExpression: string
  readonly destination: RunDestination
  readonly args: JsonObject
  /** Empty: the job's. */
  readonly resources: readonly JsonObject[]
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

/** Columns of a trigger `t`, its schedule `s` and the lease `l` on its last run: whether that runs is known to the lease alone. */
const COLUMNS = `t.id, t.environment_id as "environmentId", t.sync_job_id as "syncJobId",
  t.integrated_account_id as "integratedAccountId", t.cron_expression as "cronExpression",
  t.daemon_group_key as "groupKey", t.webhook_id as "webhookId", t.args, t.resources,
  t.error_handling as "errorHandling", t.created_at as "createdAt",
  t.updated_at as "updatedAt", t.version, s.is_paused as "isPaused", s.next_fire_at as "nextRunAt",
  s.last_scheduled_for as "lastRunAt", s.error,
  case when l.run_id is null then s.last_run_status else 'running' end as "lastRunStatus"`
const SCHEDULE = 'trigger_schedule s left join run_lease l on l.run_id = s.last_run_id'

interface TriggerRow extends Omit<TriggerRecord, 'destination' | 'resources'> {
  readonly groupKey: string | null
  readonly webhookId: string | null
  readonly resources: readonly JsonObject[] | null
}

/** Stores a trigger and its schedule in one statement. */
export async function insertTrigger(tx: Tx, trigger: NewTrigger): Promise<TriggerRecord> {
  const inserted = await queryOne<TriggerRow>(
    tx,
    `with t as (
       insert into sync_job_cron_trigger (environment_id, id, sync_job_id, integrated_account_id, cron_expression,
         daemon_group_key, webhook_id, args, resources, error_handling)
       values (?, ?, ?, ?, ?, ?, ?, ?::jsonb, ?::jsonb, ?) returning *
     ), s as (
       insert into trigger_schedule (trigger_id, environment_id, shard, region, cron_expression, next_fire_at)
       select id, environment_id, ?, ?, cron_expression, ? from t returning *
     )
     select ${COLUMNS} from t join s on s.trigger_id = t.id left join run_lease l on l.run_id = s.last_run_id`,
    [
      trigger.environmentId,
      trigger.id,
      trigger.syncJobId,
      trigger.integratedAccountId,
      trigger.cronExpression,
      ...destinationColumns(trigger.destination),
      jsonb(trigger.args),
      trigger.resources.length === 0 ? null : jsonb(trigger.resources),
      trigger.errorHandling,
      trigger.shard,
      trigger.region,
      trigger.nextFireAt,
    ],
  )
  if (inserted === undefined) throw new Error('an insert returned no row')
  return triggerFromRow(inserted)
}

/** One trigger. Three primary keys. */
export async function findTrigger(tx: Tx, environmentId: string, id: string): Promise<TriggerRecord | undefined> {
  const found = await queryOne<TriggerRow>(
    tx,
    `select ${COLUMNS} from sync_job_cron_trigger t join (${SCHEDULE}) on s.trigger_id = t.id
     where t.environment_id = ? and t.id = ?`,
    [environmentId, id],
  )
  return found && triggerFromRow(found)
}

/**
 * Like `findTrigger`, and keeps other writers of the trigger waiting until the transaction ends. Whoever locks both locks
 * the trigger before its schedule; ticks lock the schedule alone.
 */
export async function lockTrigger(tx: Tx, environmentId: string, id: string): Promise<TriggerRecord | undefined> {
  const found = await queryOne<TriggerRow>(
    tx,
    `select ${COLUMNS} from sync_job_cron_trigger t join (${SCHEDULE}) on s.trigger_id = t.id
     where t.environment_id = ? and t.id = ? for no key update of t`,
    [environmentId, id],
  )
  return found && triggerFromRow(found)
}

/** Triggers of the environment below an id (all when undefined), newest first. Rides on the primary key or the filter's index. */
export async function listTriggers(
  tx: Tx,
  environmentId: string,
  filter: TriggerFilter,
  before: string | undefined,
  limit: number,
): Promise<readonly TriggerRecord[]> {
  const conditions = [
    ['t.environment_id = ?', environmentId],
    ['t.sync_job_id = ?', filter.syncJobId],
    ['t.integrated_account_id = ?', filter.integratedAccountId],
    ['t.id < ?', before],
  ] as const
  const given = conditions.flatMap(([sql, value]) => (value === undefined ? [] : [{ sql, value }]))
  const found = await query<TriggerRow>(
    tx,
    `select ${COLUMNS} from sync_job_cron_trigger t join (${SCHEDULE}) on s.trigger_id = t.id
     where ${given.map(({ sql }) => sql).join(' and ')} order by t.id desc limit ?`,
    [...given.map(({ value }) => value), limit],
  )
  return found.map(triggerFromRow)
}

/**
 * Replaces the destination in one statement; every rule is in its WHERE.
 *
 * @returns undefined when the trigger is not there, its version or expression is not the given one, or the webhook is not
 * one of the environment: the caller finds out which, which costs the common case nothing
 */
export async function updateTriggerDestination(
  tx: Tx,
  environmentId: string,
  id: string,
  destination: RunDestination,
  expected: { readonly version: number | undefined; readonly cronExpression: string | undefined },
): Promise<TriggerRecord | undefined> {
  const [groupKey, webhookId] = destinationColumns(destination)
  const bindings: SqlValue[] = [groupKey, webhookId, environmentId, id]
  const webhookRule = 'and exists (select from webhook w where w.environment_id = t.environment_id and w.id = ?)'
  const updated = await queryOne<TriggerRow>(
    tx,
    `update sync_job_cron_trigger t set daemon_group_key = ?, webhook_id = ?, updated_at = now(), version = version + 1
     from ${SCHEDULE}
     where t.environment_id = ? and t.id = ? and s.trigger_id = t.id
       and t.version = coalesce(?, t.version) and t.cron_expression = coalesce(?, t.cron_expression)
       ${webhookId === null ? '' : webhookRule}
     returning ${COLUMNS}`,
    [
      ...bindings,
      expected.version ?? null,
      expected.cronExpression ?? null,
      ...(webhookId === null ? [] : [webhookId]),
    ],
  )
  return updated && triggerFromRow(updated)
}

/** Writes the settings of a locked trigger. */
export async function updateTriggerSettings(
  tx: Tx,
  environmentId: string,
  id: string,
  settings: Pick<TriggerRecord, 'cronExpression' | 'destination' | 'errorHandling'>,
): Promise<void> {
  await execute(
    tx,
    `update sync_job_cron_trigger set cron_expression = ?, daemon_group_key = ?, webhook_id = ?, error_handling = ?,
       updated_at = now(), version = version + 1
     where environment_id = ? and id = ?`,
    [settings.cronExpression, ...destinationColumns(settings.destination), settings.errorHandling, environmentId, id],
  )
}

/** Deletes a trigger, by its foreign key its schedule, and its missed ticks; returns whether it was there in that version. */
export async function deleteTrigger(
  tx: Tx,
  environmentId: string,
  id: string,
  version: number | undefined,
): Promise<boolean> {
  const deleted = await execute(
    tx,
    `with gone as (
       delete from sync_job_cron_trigger where environment_id = ? and id = ? and version = coalesce(?, version) returning *
     ), forgotten as (
       delete from previous_run p using gone where p.environment_id = gone.environment_id
         and p.sync_job_id = gone.sync_job_id and p.integrated_account_id = gone.integrated_account_id
         and p.trigger_id = gone.id
     )
     select from gone`,
    [environmentId, id, version ?? null],
  )
  if (deleted > 0) await deleteMissedTicks(tx, [id])
  return deleted > 0
}

function triggerFromRow({ groupKey, webhookId, resources, ...trigger }: TriggerRow): TriggerRecord {
  return { ...trigger, resources: resources ?? [], destination: destinationFromColumns(groupKey, webhookId) }
}

/** A schedule whose row is locked. */
export interface LockedSchedule {
  readonly isPaused: boolean
  readonly error: string | null
  readonly nextFireAt: Date | null
  /** The database's clock after the lock was granted, or the moved one. */
  readonly now: Date
}

/** Takes the schedule's row; waits for a tick that is being fired from it. */
export async function lockSchedule(tx: Tx, triggerId: string): Promise<LockedSchedule | undefined> {
  return await queryOne(
    tx,
    `with locked as (
       select is_paused, error, next_fire_at from trigger_schedule where trigger_id = ? for update
     )
     select is_paused as "isPaused", error, next_fire_at as "nextFireAt",
       clock_timestamp()::timestamptz(3) as now from locked`,
    [triggerId],
  )
}

/** What a schedule is to be. */
export interface ScheduleChange {
  readonly cronExpression: string
  readonly isPaused: boolean
  readonly nextFireAt: Date | null
}

/** Writes a locked schedule, which clears the error it was parked with. */
export async function updateSchedule(tx: Tx, triggerId: string, change: ScheduleChange): Promise<void> {
  await execute(
    tx,
    `update trigger_schedule set cron_expression = ?, is_paused = ?, next_fire_at = ?, error = null where trigger_id = ?`,
    [change.cronExpression, change.isPaused, change.nextFireAt, triggerId],
  )
}

/** Shows a run on the schedule of the trigger it was made from, as its latest. */
export async function updateLastRun(
  tx: Tx,
  triggerId: string,
  run: { readonly id: string; readonly scheduledFor: Date; readonly status: RunStatus },
): Promise<void> {
  await execute(
    tx,
    `update trigger_schedule set last_scheduled_for = ?, last_run_id = ?, last_run_status = ? where trigger_id = ?`,
    [run.scheduledFor, run.id, run.status, triggerId],
  )
}

/**
 * Takes a schedule out of the ticks, with the reason, unless it has moved since the tick was looked at: then whoever moved
 * it has given it another chance.
 *
 * @returns whether it was taken out
 */
export async function suspendSchedule(tx: Tx, triggerId: string, dueAt: Date, error: string): Promise<boolean> {
  const parked = await execute(
    tx,
    'update trigger_schedule set next_fire_at = null, error = ? where trigger_id = ? and next_fire_at = ?',
    [error, triggerId, dueAt],
  )
  return parked > 0
}
