import type { Json, JsonObject } from '../../base/index.ts'
import { affected, jsonb, row, rows, type Tx } from '../database.ts'
import type { LeaseKey, NowOverride } from './queue-statements.ts'
import type { ClaimedRun, DecidedEnding, ResourceStats } from './run-record.ts'
import { destinationFromColumns } from './sync-job-run.ts'

/** Stands for "no trigger" in previous_run, whose key cannot hold null. */
const NO_TRIGGER = '00000000-0000-0000-0000-000000000000'
/** Records changed while the last run began may have been missed by it. */
const PREVIOUS_RUN_OVERLAP = `interval '2 minutes'`

const DAY_MS = 24 * 60 * 60 * 1000

/** What a leased run needs beside its lease. */
export type RunWork = Omit<ClaimedRun, 'leaseId' | 'leaseExpiresAt' | 'attempt' | 'attemptsMax'>

interface WorkRow extends Omit<RunWork, 'destination'> {
  readonly groupKey: string | null
  readonly webhookId: string | null
}

/** A run just leased. */
export interface LeasedRun {
  readonly id: string
  readonly scheduledFor: Date
  readonly attempt: number
}

/**
 * Marks leased runs running and returns what to do: their snapshot, what the last attempt saved, and where an incremental
 * sync begins. A run whose day was dropped is not in the answer. Belongs in the transaction that took the leases.
 */
export async function beginRuns(tx: Tx, runs: readonly LeasedRun[], now: NowOverride): Promise<readonly RunWork[]> {
  const begun: RunWork[] = []
  for (const { from, to, items } of groupByDay(runs)) {
    const found = await rows<WorkRow>(tx, BEGIN_RUNS, [
      ...[now, items.map(({ id }) => id), items.map(({ scheduledFor }) => scheduledFor)],
      ...[items.map(({ attempt }) => attempt), from, to],
    ])
    for (const { groupKey, webhookId, ...work } of found)
      begun.push({ ...work, destination: destinationFromColumns(groupKey, webhookId) })
  }
  return begun
}

const BEGIN_RUNS = `with clock as (select coalesce(?::timestamptz, now()) as at)
  update sync_job_run r
  set status = 'running', attempt = v.attempt, started_at = coalesce(r.started_at, clock.at), updated_at = clock.at,
    version = r.version + 1
  from clock, unnest(?::uuid[], ?::timestamptz[], ?::integer[]) as v (id, scheduled_for, attempt)
    left join run_checkpoint c on c.run_id = v.id
  where r.id = v.id and r.scheduled_for = v.scheduled_for and r.scheduled_for >= ? and r.scheduled_for < ?
  returning r.id, r.environment_id as "environmentId", r.sync_job_id as "syncJobId",
    r.integrated_account_id as "integratedAccountId", r.trigger_id as "triggerId", r.kind, r.args, r.resources,
    r.daemon_group_key as "groupKey", r.webhook_id as "webhookId", r.error_handling as "errorHandling",
    case when not r.ignore_previous_run then (
      select p.started_at - ${PREVIOUS_RUN_OVERLAP} from previous_run p
      where p.environment_id = r.environment_id and p.sync_job_id = r.sync_job_id
        and p.integrated_account_id = r.integrated_account_id
        and p.trigger_id = coalesce(r.trigger_id, '${NO_TRIGGER}')
    ) end as "previousRunDate",
    r.scheduled_for as "scheduledFor", r.started_at as "startedAt", c.checkpoint, c.ending,
    coalesce(c.resource_stats, r.resource_stats) as "resourceStats"`

/**
 * Stores a checkpoint with its counters and renews the lease, together or not at all. What is null stays as it is.
 *
 * Counters that show more pages, or more listings passed over, than those stored are progress: the attempts before this one
 * are no part of the limit any more.
 *
 * @returns whether a stop was requested; undefined when the lease is not the given one any more, and nothing was stored
 */
export async function saveRunProgress(
  tx: Tx,
  lease: LeaseKey,
  checkpoint: JsonObject | null,
  stats: readonly ResourceStats[] | null,
  ending: DecidedEnding | null,
  leaseMs: number,
  now: NowOverride,
): Promise<{ readonly isStopRequested: boolean } | undefined> {
  const counters = stats && jsonb(stats)
  return await row(
    tx,
    `with held as (
       update run_lease set expires_at = coalesce(?::timestamptz, now()) + make_interval(secs => ?),
         attempt_base = case when ${workDone('?::jsonb')} >
           coalesce((select ${workDone('c.resource_stats')} from run_checkpoint c where c.run_id = run_lease.run_id), 0)
           then greatest(attempt_base, attempt - 1) else attempt_base end
       where run_id = ? and lease_id = ?
       returning run_id, scheduled_for, environment_id, stop_requested_at
     ), saved as (
       insert into run_checkpoint (run_id, scheduled_for, environment_id, checkpoint, resource_stats, ending, saves,
         saved_at)
       select run_id, scheduled_for, environment_id, v.checkpoint, coalesce(v.resource_stats, '[]'), v.ending, 1,
         coalesce(?::timestamptz, now())
       from held, (select ?::jsonb as checkpoint, ?::jsonb as resource_stats, ?::jsonb as ending) v
       on conflict (run_id) do update set checkpoint = coalesce(excluded.checkpoint, run_checkpoint.checkpoint),
         resource_stats = coalesce(?::jsonb, run_checkpoint.resource_stats),
         ending = coalesce(excluded.ending, run_checkpoint.ending),
         saves = run_checkpoint.saves + 1, saved_at = excluded.saved_at
     )
     select stop_requested_at is not null as "isStopRequested" from held`,
    [
      ...[now, leaseMs / 1000, counters, lease.id, lease.leaseId, now],
      ...[checkpoint && jsonb(checkpoint), counters, ending && jsonb(ending), counters],
    ],
  )
}

/** SQL: how far counters say that a run has come; null for null. Grows with every position that is saved. */
function workDone(stats: string): string {
  return `(select sum((s ->> 'pages')::bigint + (s ->> 'failed')::bigint) from jsonb_array_elements(${stats}) s)`
}

/** A run whose lease was just ended. */
export interface SettledRun {
  readonly id: string
  readonly scheduledFor: Date
  readonly status: string
  readonly error: Json
  readonly attempt: number
  /** It is final; otherwise it waits again. */
  readonly isOver: boolean
}

/**
 * Writes what has become of runs, and what follows from it: progress moves from the checkpoint to the run, so that pages
 * do not rewrite its wide row; completed runs drop their checkpoint and move the start of the next incremental sync; the
 * trigger's schedule shows the status. Schedules are locked in the order of their ids.
 *
 * `previous_run` only moves forward: runs of one account end in order, but an old one that is retried may end late.
 */
export async function concludeRuns(tx: Tx, runs: readonly SettledRun[], now: NowOverride): Promise<void> {
  for (const { from, to, items } of groupByDay(runs))
    await affected(tx, CONCLUDE_RUNS, [
      ...[items.map(({ id }) => id), items.map(({ scheduledFor }) => scheduledFor)],
      ...[items.map(({ status }) => status), items.map(({ error }) => (error === null ? null : jsonb(error)))],
      ...[items.map(({ attempt }) => attempt), items.map(({ isOver }) => isOver), now, now, from, to],
    ])
}

const CONCLUDE_RUNS = `with v as (
    select * from unnest(?::uuid[], ?::timestamptz[], ?::text[], ?::jsonb[], ?::integer[], ?::boolean[])
      as v (id, scheduled_for, status, error, attempt, is_over)
  ), marked as (
    update sync_job_run r
    set status = v.status, error = v.error, attempt = v.attempt, updated_at = coalesce(?::timestamptz, now()),
      finished_at = case when v.is_over then coalesce(?::timestamptz, now()) end,
      version = r.version + 1 + coalesce(c.saves, 0),
      resource_stats = coalesce(c.resource_stats, r.resource_stats)
    from v left join run_checkpoint c on c.run_id = v.id
    where r.id = v.id and r.scheduled_for = v.scheduled_for and r.scheduled_for >= ? and r.scheduled_for < ?
    returning r.id, r.environment_id, r.sync_job_id, r.integrated_account_id, r.trigger_id, r.started_at, r.status
  ), gone as (
    delete from run_checkpoint c using v where c.run_id = v.id and v.status = 'completed'
  ), moved as (
    insert into previous_run as p (environment_id, sync_job_id, integrated_account_id, trigger_id, started_at)
    select environment_id, sync_job_id, integrated_account_id, coalesce(trigger_id, '${NO_TRIGGER}'), max(started_at)
    from marked where status = 'completed' and started_at is not null group by 1, 2, 3, 4 order by 1, 2, 3, 4
    on conflict (environment_id, sync_job_id, integrated_account_id, trigger_id)
      do update set started_at = greatest(p.started_at, excluded.started_at)
  ), shown as (
    select s.trigger_id, m.id, m.status from trigger_schedule s join marked m on s.trigger_id = m.trigger_id
    order by s.trigger_id for update of s
  )
  update trigger_schedule s set
    last_run_status = case when s.last_run_id = shown.id then shown.status else s.last_run_status end,
    consecutive_failures = case shown.status when 'failed' then s.consecutive_failures + 1
      when 'completed' then 0 else s.consecutive_failures end
  from shown where s.trigger_id = shown.trigger_id`

/**
 * The items by the UTC day of their tick. A statement that names one day is planned for one partition; without it, claims
 * were measured at 20 ms with 36 partitions against 3.5 ms with 7.
 */
function groupByDay<Item extends { readonly scheduledFor: Date }>(items: readonly Item[]) {
  const days = Map.groupBy(items, ({ scheduledFor }) => Math.floor(scheduledFor.getTime() / DAY_MS))
  return [...days].map(([day, ofDay]) => {
    return { from: new Date(day * DAY_MS), to: new Date((day + 1) * DAY_MS), items: ofDay }
  })
}
