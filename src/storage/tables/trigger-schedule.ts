import { execute, queryOne, type Tx } from '../database.ts'
import type { NowOverride } from './queue-statements.ts'
import type { RunStatus } from './run-record.ts'

/** A schedule whose row is locked. */
export interface LockedSchedule {
  readonly isPaused: boolean
  readonly error: string | null
  readonly nextFireAt: Date | null
  /** The database's clock after the lock was granted, or the moved one. */
  readonly now: Date
}

/** Takes the schedule's row; waits for a tick that is being fired from it. */
export async function lockSchedule(tx: Tx, triggerId: string, now: NowOverride): Promise<LockedSchedule | undefined> {
  return await queryOne(
    tx,
    `with locked as (
       select is_paused, error, next_fire_at from trigger_schedule where trigger_id = ? for update
     )
     select is_paused as "isPaused", error, next_fire_at as "nextFireAt",
       coalesce(?::timestamptz, clock_timestamp())::timestamptz(3) as now from locked`,
    [triggerId, now],
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

/** Changes the status of the latest run, when it still is that run. */
export async function updateLastRunStatus(tx: Tx, triggerId: string, runId: string, status: RunStatus): Promise<void> {
  await execute(tx, 'update trigger_schedule set last_run_status = ? where trigger_id = ? and last_run_id = ?', [
    status,
    triggerId,
    runId,
  ])
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
