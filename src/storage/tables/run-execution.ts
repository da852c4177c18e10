import type { JsonObject } from '../../base/index.ts'
import { affected, jsonb, row, rows, type Tx } from '../database.ts'
import type { LeaseKey, NowOverride } from './queue-statements.ts'
import type { ClaimedRun, ResourceStats } from './run-record.ts'
import { destinationFromColumns } from './sync-job-run.ts'

/** Stands for "no trigger" in previous_run, whose key cannot hold null. */
const NO_TRIGGER = '00000000-0000-0000-0000-000000000000'
/** Records changed while the last run began may have been missed by it. */
const PREVIOUS_RUN_OVERLAP = `interval '2 minutes'`

/** What a leased run needs beside its lease. */
export type RunWork = Omit<ClaimedRun, 'leaseId' | 'leaseExpiresAt' | 'attempt'>

interface WorkRow extends Omit<RunWork, 'destination'> {
  readonly groupKey: string | null
  readonly webhookId: string | null
}

/**
 * What to do for leased runs: their snapshot, what the last attempt saved, and where an incremental sync begins.
 *
 * The day of each run is given, so that one partition is read. A run whose day was dropped is not in the answer.
 */
export async function loadRunWork(
  tx: Tx,
  runs: readonly { readonly id: string; readonly scheduledFor: Date }[],
): Promise<readonly RunWork[]> {
  const found = await rows<WorkRow>(
    tx,
    `select r.id, r.environment_id as "environmentId", r.sync_job_id as "syncJobId",
       r.integrated_account_id as "integratedAccountId", r.trigger_id as "triggerId", r.kind, r.args, r.resources,
       r.daemon_group_key as "groupKey", r.webhook_id as "webhookId", r.error_handling as "errorHandling",
       case when not r.ignore_previous_run then p.started_at - ${PREVIOUS_RUN_OVERLAP} end as "previousRunDate",
       r.scheduled_for as "scheduledFor", r.started_at as "startedAt", c.checkpoint,
       coalesce(c.resource_stats, r.resource_stats) as "resourceStats"
     from unnest(?::uuid[], ?::timestamptz[]) as v (id, scheduled_for)
     join sync_job_run r on r.id = v.id and r.scheduled_for = v.scheduled_for
     left join run_checkpoint c on c.run_id = r.id
     left join previous_run p on p.environment_id = r.environment_id and p.sync_job_id = r.sync_job_id
       and p.integrated_account_id = r.integrated_account_id and p.trigger_id = coalesce(r.trigger_id, '${NO_TRIGGER}')`,
    [runs.map(({ id }) => id), runs.map(({ scheduledFor }) => scheduledFor)],
  )
  return found.map(({ groupKey, webhookId, ...work }) => ({
    ...work,
    destination: destinationFromColumns(groupKey, webhookId),
  }))
}

/**
 * Stores a checkpoint with its counters and renews the lease, together or not at all.
 *
 * @returns whether a stop was requested; undefined when the lease is not the given one any more, and nothing was stored
 */
export async function saveRunProgress(
  tx: Tx,
  lease: LeaseKey,
  checkpoint: JsonObject,
  stats: readonly ResourceStats[],
  leaseMs: number,
  now: NowOverride,
): Promise<{ readonly isStopRequested: boolean } | undefined> {
  return await row(
    tx,
    `with held as (
       update run_lease set expires_at = coalesce(?::timestamptz, now()) + make_interval(secs => ?)
       where run_id = ? and lease_id = ?
       returning run_id, scheduled_for, environment_id, stop_requested_at
     ), saved as (
       insert into run_checkpoint (run_id, scheduled_for, environment_id, checkpoint, resource_stats, saves, saved_at)
       select run_id, scheduled_for, environment_id, ?::jsonb, ?::jsonb, 1, coalesce(?::timestamptz, now()) from held
       on conflict (run_id) do update set checkpoint = excluded.checkpoint, resource_stats = excluded.resource_stats,
         saves = run_checkpoint.saves + 1, saved_at = excluded.saved_at
     )
     select stop_requested_at is not null as "isStopRequested" from held`,
    [now, leaseMs / 1000, lease.id, lease.leaseId, jsonb(checkpoint), jsonb(stats), now],
  )
}

/** A run that was just settled. */
export interface SettledRun {
  readonly id: string
  readonly scheduledFor: Date
  readonly triggerId: string | null
  readonly status: string
}

/**
 * What follows from settled runs: completed ones drop their checkpoint and move the start of the next incremental sync;
 * final ones are shown on their trigger's schedule, whose rows are locked in the order of their ids.
 *
 * `previous_run` only moves forward: runs of one account end in order, but a retried old one may end late.
 */
export async function concludeRuns(tx: Tx, runs: readonly SettledRun[]): Promise<void> {
  await affected(
    tx,
    `with v as (
       select * from unnest(?::uuid[], ?::timestamptz[], ?::uuid[], ?::text[]) as v (id, scheduled_for, trigger_id, status)
     ), gone as (
       delete from run_checkpoint c using v where c.run_id = v.id and v.status = 'completed'
     ), moved as (
       insert into previous_run as p (environment_id, sync_job_id, integrated_account_id, trigger_id, started_at)
       select r.environment_id, r.sync_job_id, r.integrated_account_id, coalesce(r.trigger_id, '${NO_TRIGGER}'), max(r.started_at)
       from v join sync_job_run r on r.id = v.id and r.scheduled_for = v.scheduled_for
       where v.status = 'completed' and r.started_at is not null
       group by 1, 2, 3, 4 order by 1, 2, 3, 4
       on conflict (environment_id, sync_job_id, integrated_account_id, trigger_id)
         do update set started_at = greatest(p.started_at, excluded.started_at)
     ), shown as (
       select s.trigger_id, v.id, v.status from trigger_schedule s join v on s.trigger_id = v.trigger_id
       order by s.trigger_id for update of s
     )
     update trigger_schedule s set
       last_run_status = case when s.last_run_id = shown.id then shown.status else s.last_run_status end,
       consecutive_failures = case shown.status when 'failed' then s.consecutive_failures + 1
         when 'completed' then 0 else s.consecutive_failures end
     from shown where s.trigger_id = shown.trigger_id`,
    [
      runs.map(({ id }) => id),
      runs.map(({ scheduledFor }) => scheduledFor),
      runs.map(({ triggerId }) => triggerId),
      runs.map(({ status }) => status),
    ],
  )
}
