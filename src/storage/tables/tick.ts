import { affected, rows, type Tx } from '../database.ts'
import type { RunDestination } from './run-record.ts'
import { destinationFromColumns } from './sync-job-run.ts'

/** A tick that becomes a run, or a skipped one when there is a reason. */
export interface NewTick {
  readonly runId: string
  readonly triggerId: string
  readonly environmentId: string
  /** The trigger's, which never changes. */
  readonly integratedAccountId: string
  readonly region: string
  readonly scheduledFor: Date
  /** `null`: it is to be executed. */
  readonly skipReason: string | null
}

/** A run that a tick has become. */
export interface TickRun extends Omit<NewTick, 'runId'> {
  readonly id: string
  readonly destination: RunDestination
}

/** Where a schedule stands after its ticks. */
export interface ScheduleAdvance {
  readonly triggerId: string
  readonly nextFireAt: Date
  /** The latest of its new runs; undefined when every tick had its run already. */
  readonly last:
    | { readonly runId: string; readonly scheduledFor: Date; readonly status: 'created' | 'skipped' }
    | undefined
  readonly fired: number
  readonly skipped: number
  readonly missed: number
}

/** Ticks that were not caught up. */
export interface MissedTicks {
  readonly triggerId: string
  readonly environmentId: string
  readonly firstAt: Date
  readonly lastAt: Date
  /** A lower bound when the stretch was too long to count. */
  readonly count: number
}

/**
 * Makes the runs of ticks and returns those that are new: a tick that already has its run is passed over, which is what
 * makes "exactly one run row per tick" hold whatever happened before.
 *
 * Resources, arguments and destination are copied here, inside the database, from trigger and job; the destination in the
 * answer is the one that was copied. A skipped run, which is never executed, copies neither resources nor arguments.
 */
export async function insertTickRuns(tx: Tx, ticks: readonly NewTick[]): Promise<readonly TickRun[]> {
  const inserted = await rows<{ id: string; groupKey: string | null; webhookId: string | null }>(
    tx,
    `insert into sync_job_run (id, scheduled_for, environment_id, trigger_id, kind, sync_job_id, integrated_account_id,
       region, status, skip_reason, daemon_group_key, webhook_id, resources, args, error_handling, ignore_previous_run,
       finished_at)
     select v.run_id, v.scheduled_for, t.environment_id, t.id, 'cron', t.sync_job_id, t.integrated_account_id, v.region,
       case when v.skip_reason is null then 'created' else 'skipped' end, v.skip_reason, t.daemon_group_key, t.webhook_id,
       case when v.skip_reason is null then coalesce(t.resources, j.resources) else '[]' end,
       case when v.skip_reason is null then t.args else '{}' end,
       coalesce(t.error_handling, j.error_handling), false,
       case when v.skip_reason is not null then now() end
     from unnest(?::uuid[], ?::uuid[], ?::uuid[], ?::text[], ?::timestamptz[], ?::text[])
       as v (run_id, trigger_id, environment_id, region, scheduled_for, skip_reason)
     join sync_job_cron_trigger t on t.environment_id = v.environment_id and t.id = v.trigger_id
     join sync_job j on j.environment_id = t.environment_id and j.id = t.sync_job_id
     on conflict (trigger_id, scheduled_for, kind) do nothing
     returning id, daemon_group_key as "groupKey", webhook_id as "webhookId"`,
    [
      ticks.map(({ runId }) => runId),
      ticks.map(({ triggerId }) => triggerId),
      ticks.map(({ environmentId }) => environmentId),
      ticks.map(({ region }) => region),
      ticks.map(({ scheduledFor }) => scheduledFor),
      ticks.map(({ skipReason }) => skipReason),
    ],
  )
  const destinations = new Map(
    inserted.map(({ id, groupKey, webhookId }) => [id, destinationFromColumns(groupKey, webhookId)]),
  )
  return ticks.flatMap(({ runId, ...tick }) => {
    const destination = destinations.get(runId)
    return destination === undefined ? [] : [{ id: runId, ...tick, destination }]
  })
}

/** Moves locked schedules past their ticks. The only statement that moves a schedule on. */
export async function advanceSchedules(tx: Tx, advances: readonly ScheduleAdvance[]): Promise<void> {
  await affected(
    tx,
    `update trigger_schedule s set next_fire_at = v.next_fire_at,
       last_scheduled_for = coalesce(v.last_scheduled_for, s.last_scheduled_for),
       last_run_id = coalesce(v.last_run_id, s.last_run_id),
       last_run_status = coalesce(v.last_run_status, s.last_run_status),
       fired_total = s.fired_total + v.fired, skipped_total = s.skipped_total + v.skipped, missed_total = s.missed_total + v.missed
     from unnest(?::uuid[], ?::timestamptz[], ?::timestamptz[], ?::uuid[], ?::text[], ?::integer[], ?::integer[], ?::integer[])
       as v (trigger_id, next_fire_at, last_scheduled_for, last_run_id, last_run_status, fired, skipped, missed)
     where s.trigger_id = v.trigger_id`,
    [
      advances.map(({ triggerId }) => triggerId),
      advances.map(({ nextFireAt }) => nextFireAt),
      advances.map(({ last }) => last?.scheduledFor ?? null),
      advances.map(({ last }) => last?.runId ?? null),
      advances.map(({ last }) => last?.status ?? null),
      advances.map(({ fired }) => fired),
      advances.map(({ skipped }) => skipped),
      advances.map(({ missed }) => missed),
    ],
  )
}

/** Records stretches of ticks that were not caught up. A stretch that is recorded already stays as it is. */
export async function insertMissedTicks(tx: Tx, missed: readonly MissedTicks[]): Promise<void> {
  await affected(
    tx,
    `insert into missed_ticks (environment_id, trigger_id, first_at, last_at, count)
     select * from unnest(?::uuid[], ?::uuid[], ?::timestamptz[], ?::timestamptz[], ?::integer[])
     on conflict (trigger_id, last_at) do nothing`,
    [
      missed.map(({ environmentId }) => environmentId),
      missed.map(({ triggerId }) => triggerId),
      missed.map(({ firstAt }) => firstAt),
      missed.map(({ lastAt }) => lastAt),
      missed.map(({ count }) => count),
    ],
  )
}

/**
 * Deletes the stretches of triggers that are gone. A statement after the one that deleted them: that one waited for ticks
 * in flight, and what they recorded is visible from then on.
 */
export async function deleteMissedTicks(tx: Tx, triggerIds: readonly string[]): Promise<void> {
  if (triggerIds.length > 0)
    await affected(tx, 'delete from missed_ticks where trigger_id = any(?::uuid[])', [triggerIds])
}
