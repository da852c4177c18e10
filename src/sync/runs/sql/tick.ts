import { type Db, execute, query, rowSet, type Tx } from '../../../foundation/database/index.ts'
import { insertWaitingSql } from '../../../foundation/queue/index.ts'
import { asksForSql } from './run-events.ts'
import { RUN_QUEUE } from './run-queue.ts'

/** A tick that becomes a run, or a skipped one when there is a reason. */
export interface NewTick {
  readonly runId: string
  readonly triggerId: string
  readonly environmentId: string
  readonly scheduledFor: Date
  /** `null`: it is to be executed. */
  readonly skipReason: string | null
}

/** The ticks of one trigger, and where they leave its schedule. */
export interface TriggerTicks {
  readonly triggerId: string
  readonly environmentId: string
  readonly region: string
  /** Oldest first. Empty when all of them have their runs already. */
  readonly ticks: readonly NewTick[]
  readonly nextFireAt: Date
}

/** How the groups of the queue are named. */
export interface QueueGroupNames {
  readonly webhook: string
  /** Of daemon groups, before environment, colon and key. */
  readonly daemonPrefix: string
}

/** Ticks that were not caught up. */
export interface MissedTicks {
  readonly triggerId: string
  readonly environmentId: string
  readonly firstAt: Date
  readonly lastAt: Date
  /** A lower bound when the range was too long to count. */
  readonly count: number
}

/** The run of a tick. */
export interface TickRun {
  readonly id: string
  readonly scheduledFor: Date
  readonly skipReason: string | null
}

const TICKS =
  rowSet(`run_id uuid, trigger_id uuid, environment_id uuid, region text, scheduled_for timestamptz, skip_reason text,
  next_fire_at timestamptz`)
const TICK_KEYS = rowSet('run_id uuid, trigger_id uuid, scheduled_for timestamptz')
const MISSED = rowSet('environment_id uuid, trigger_id uuid, first_at timestamptz, last_at timestamptz, count integer')

const INSERT_TICKS = `with tick as materialized (
    select * from ${TICKS.rows}
  ), run as (
    insert into sync_job_run (id, scheduled_for, environment_id, trigger_id, kind, sync_job_id, integrated_account_id,
      region, status, skip_reason, daemon_group_key, webhook_id, resources, args, error_handling, ignore_previous_run,
      finished_at)
    select v.run_id, v.scheduled_for, t.environment_id, t.id, 'cron', t.sync_job_id, t.integrated_account_id, v.region,
      case when v.skip_reason is null then 'created' else 'skipped' end, v.skip_reason, t.daemon_group_key, t.webhook_id,
      case when v.skip_reason is null then coalesce(t.resources, j.resources) else '[]' end,
      case when v.skip_reason is null then t.args else '{}' end,
      coalesce(t.error_handling, j.error_handling), false,
      case when v.skip_reason is not null then now() end
    from tick v
    join sync_job_cron_trigger t on t.environment_id = v.environment_id and t.id = v.trigger_id
    join sync_job j on j.environment_id = t.environment_id and j.id = t.sync_job_id
    where v.run_id is not null
    returning id as run_id, scheduled_for, environment_id, trigger_id, integrated_account_id, region, status, skip_reason,
      case when webhook_id is null then :daemonPrefix::text || environment_id || ':' || daemon_group_key
        else :webhookGroup::text end as queue_group
  ), waiting as (
    select *, null::timestamptz as available_at, 0 as attempt from run where status = 'created'
  ), enqueued as (
    ${insertWaitingSql(RUN_QUEUE, 'waiting')}
  ), asking as materialized (
    select w.environment_id from webhook w where w.environment_id in (select environment_id from tick)
      and ${asksForSql(['sync_job_run:created', 'sync_job_cron_trigger:failed'])}
  ), advanced as (
    update trigger_schedule s set next_fire_at = v.next_fire_at,
    last_scheduled_for = coalesce(v.scheduled_for, s.last_scheduled_for),
    last_run_id = coalesce(v.run_id, s.last_run_id),
    last_run_status = case when v.run_id is null then s.last_run_status
      when v.skip_reason is null then 'created' else 'skipped' end
    from tick v where s.trigger_id = v.trigger_id and v.next_fire_at is not null
  )
  select run_id as id, scheduled_for, skip_reason from run
  where environment_id in (select environment_id from asking)
  order by scheduled_for, run_id`

/**
 * Inserts the runs of ticks, queues those that are to be executed, and advances the schedules, which the transaction has
 * locked: one statement, to which every id is sent once. No other statement advances a schedule.
 *
 * Resources, arguments and destination are copied here, inside the database, from trigger and job. A skipped run, which is
 * never executed, copies neither resources nor arguments.
 *
 * @returns the runs of environments where a webhook asks for events of new runs or of ticks that fail
 * @throws when a tick has its run already, a unique violation, which is what makes "exactly one run row per tick" hold
 * after any crash; `findTicksWithRun` finds them
 */
export async function insertTicks(
  tx: Tx,
  triggers: readonly TriggerTicks[],
  groups: QueueGroupNames,
): Promise<readonly TickRun[]> {
  const ticks = triggers.flatMap(tickRows)
  const { daemonPrefix, webhook: webhookGroup } = groups
  return await query(tx, INSERT_TICKS, { ...TICKS.of(ticks), daemonPrefix, webhookGroup })
}

/** One row per tick; the last one of a trigger advances its schedule. A row without a tick only advances it. */
function tickRows({ ticks, nextFireAt, ...trigger }: TriggerTicks) {
  const before = ticks.slice(0, -1).map((tick) => ({ ...tick, ...trigger, nextFireAt: null }))
  const last = ticks.at(-1) ?? { runId: null, scheduledFor: null, skipReason: null }
  return [...before, { ...last, ...trigger, nextFireAt }]
}

/** Ticks that have their runs already, by the ids their runs would have got. Rides on the tick index. */
export async function findTicksWithRun(tx: Db, ticks: readonly NewTick[]): Promise<ReadonlySet<string>> {
  const found = await query<{ runId: string }>(
    tx,
    `select v.run_id
     from ${TICK_KEYS.rows}
     join sync_job_run r on r.trigger_id = v.trigger_id and r.scheduled_for = v.scheduled_for and r.kind = 'cron'`,
    TICK_KEYS.of(ticks),
  )
  return new Set(found.map(({ runId }) => runId))
}

/** Records ranges of ticks that were not caught up; a range that is recorded already is kept. */
export async function insertMissedTicks(tx: Db, missed: readonly MissedTicks[]): Promise<void> {
  await execute(
    tx,
    `insert into missed_ticks (${MISSED.columns}) select * from ${MISSED.rows}
     on conflict (trigger_id, last_at) do nothing`,
    MISSED.of(missed),
  )
}

/**
 * Deletes the missed ticks of deleted triggers. Must be a statement of its own after the delete, which waited for ticks in
 * flight: what they recorded is visible only from then on.
 */
export async function deleteMissedTicks(tx: Db, triggerIds: readonly string[]): Promise<void> {
  if (triggerIds.length > 0)
    await execute(tx, 'delete from missed_ticks where trigger_id = any(:triggerIds::uuid[])', { triggerIds })
}

/** What became of one tick, or of a range of missed ones. */
export interface TickLedgerEntry {
  readonly outcome: 'fired' | 'skipped' | 'missed'
  /** The tick; of a missed range, its last. */
  readonly scheduledFor: Date
  readonly runId: string | null
  readonly skipReason: string | null
  readonly missedFrom: Date | null
  readonly missedCount: number | null
}

/**
 * The ledger of a trigger below a tick (all of it when undefined), latest first. Rides on the tick index of the runs and
 * the primary key of missed_ticks. A moment has one entry: a tick is either a run or inside one missed range.
 */
export async function listTickLedger(
  tx: Db,
  triggerId: string,
  below: Date | undefined,
  limit: number,
): Promise<readonly TickLedgerEntry[]> {
  return await query(
    tx,
    `(select case when status = 'skipped' then 'skipped' else 'fired' end as outcome, scheduled_for,
        case when status <> 'skipped' then id end as run_id, skip_reason,
        null::timestamptz as missed_from, null::integer as missed_count
      from sync_job_run where trigger_id = :triggerId and kind = 'cron' and scheduled_for < coalesce(:below::timestamptz, 'infinity')
      order by scheduled_for desc limit :limit)
     union all
     (select 'missed', last_at, null, null, first_at, count
      from missed_ticks where trigger_id = :triggerId and last_at < coalesce(:below::timestamptz, 'infinity')
      order by last_at desc limit :limit)
     order by scheduled_for desc limit :limit`,
    { triggerId, below: below ?? null, limit },
  )
}
