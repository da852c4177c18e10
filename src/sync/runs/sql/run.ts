import { type Db, execute, jsonb, query, queryForValues, queryOne, rowSet } from '../../../foundation/database/index.ts'
import type { JsonObject } from '../../../foundation/json/index.ts'
import type { ErrorHandling, Run, RunDestination, RunStatus } from '../run.ts'

/** A run to be stored, waiting. */
export interface NewRun {
  readonly id: string
  readonly environmentId: string
  readonly triggerId: string | null
  readonly syncJobId: string
  readonly integratedAccountId: string
  readonly region: string
  readonly destination: RunDestination
  readonly resources: readonly JsonObject[]
  readonly args: JsonObject
  readonly errorHandling: ErrorHandling
  readonly ignorePreviousRun: boolean
}

/** Which runs to list. */
export interface RunFilter {
  readonly syncJobId?: string | undefined
  readonly integratedAccountId?: string | undefined
  readonly triggerId?: string | undefined
  readonly status?: RunStatus | undefined
}

/** Where a page of runs begins: below this tick, and below this id within it. */
export interface RunCursor {
  readonly scheduledFor: Date
  readonly id: string
}

/** Columns of a run `r` and its checkpoint `c`; progress is read from where it is newest. */
const KEYS = rowSet('id uuid, scheduled_for timestamptz')
const COLUMNS = `r.id, r.environment_id, r.sync_job_id, r.integrated_account_id, r.trigger_id, r.kind, r.status,
  r.skip_reason, r.args, r.resources, r.daemon_group_key as group_key, r.webhook_id, r.error_handling,
  r.ignore_previous_run, r.scheduled_for, r.started_at, r.finished_at, r.created_at,
  greatest(r.updated_at, c.saved_at) as updated_at, coalesce(c.resource_stats, r.resource_stats) as resource_stats,
  r.error, r.attempt, r.version + coalesce(c.saves, 0) as version, r.region`
const FROM = 'sync_job_run r left join run_checkpoint c on c.run_id = r.id'

/** A run with the region its account lives in. */
export type RunRecord = Run & { readonly region: string }

type RunRow = Omit<RunRecord, 'destination'> & DestinationColumns

/**
 * Stores a manual run.
 *
 * `scheduled_for` is now, or the first free millisecond after it: the tick index holds for manual runs too, and two calls
 * in the same millisecond both get their run.
 */
export async function insertManualRun(tx: Db, run: NewRun): Promise<RunRecord> {
  const { destination, resources, args, ...columns } = run
  const inserted = await queryOne<RunRow>(
    tx,
    `with recursive free (at) as (
       select date_trunc('milliseconds', clock_timestamp())
       union all
       select at + interval '1 millisecond' from free
       where exists (select from sync_job_run t where t.trigger_id = :triggerId and t.scheduled_for = free.at and t.kind = 'manual')
     ), r as (
       insert into sync_job_run (id, scheduled_for, environment_id, trigger_id, kind, sync_job_id, integrated_account_id,
         region, status, daemon_group_key, webhook_id, resources, args, error_handling, ignore_previous_run)
       select :id, (select max(at) from free), :environmentId, :triggerId, 'manual', :syncJobId, :integratedAccountId,
         :region, 'created', :groupKey, :webhookId, :resources::json, :args::json, :errorHandling, :ignorePreviousRun
       returning *
     )
     select ${COLUMNS} from r left join run_checkpoint c on c.run_id = r.id`,
    {
      ...columns,
      ...destinationColumns(destination),
      resources: jsonb(resources),
      args: jsonb(args),
    },
  )
  if (inserted === undefined) throw new Error('an insert returned no row')
  return withDestination(inserted)
}

/** One run with its progress. Rides on the primary key of every partition, since an id does not tell its day. */
export async function findRun(tx: Db, environmentId: string, id: string): Promise<RunRecord | undefined> {
  const found = await queryOne<RunRow>(
    tx,
    `select ${COLUMNS} from ${FROM} where r.id = :id and r.environment_id = :environmentId`,
    { id, environmentId },
  )
  return found && withDestination(found)
}

/** The runs that exist of those named, in any order. One statement over primary keys, one partition each. */
export async function findRuns(tx: Db, keys: readonly RunKey[]): Promise<readonly RunRecord[]> {
  const found = await query<RunRow>(
    tx,
    `select ${COLUMNS} from ${KEYS.rows}
       join (${FROM}) on r.id = v.id and r.scheduled_for = v.scheduled_for`,
    KEYS.of(keys),
  )
  return found.map(withDestination)
}

/** SQL: a run that has not ended is in the queue or leased. */
const UNFINISHED = `r.status = :status and (r.id, r.scheduled_for) in (
  select run_id, scheduled_for from run_queue where environment_id = :environmentId
  union all select run_id, scheduled_for from run_lease where environment_id = :environmentId)`
const GIVEN_UP = 'r.given_up = :status'
/** SQL: the condition of each status, by what finds it where it is rare; most runs are completed. */
const STATUS_CONDITIONS: Readonly<Record<RunStatus, string>> = {
  created: UNFINISHED,
  running: UNFINISHED,
  rate_limited: UNFINISHED,
  completed: 'r.status = :status',
  partially_completed: GIVEN_UP,
  failed: GIVEN_UP,
  stopped: GIVEN_UP,
  skipped: GIVEN_UP,
}

/**
 * Runs below a position, newest tick first. Rides on the tick, job, account, given-up or newest index, whichever the filter suits;
 * the leases are few.
 */
export async function listRuns(
  tx: Db,
  environmentId: string,
  filter: RunFilter,
  below: RunCursor | undefined,
  limit: number,
): Promise<readonly RunRecord[]> {
  const conditions = [
    'r.environment_id = :environmentId',
    filter.syncJobId && 'r.sync_job_id = :syncJobId',
    filter.integratedAccountId && 'r.integrated_account_id = :integratedAccountId',
    filter.triggerId && 'r.trigger_id = :triggerId',
    filter.status && STATUS_CONDITIONS[filter.status],
    // The first condition alone limits the range of the index.
    below && 'r.scheduled_for <= :scheduledFor and (r.scheduled_for, r.id) < (:scheduledFor::timestamptz, :id::uuid)',
  ]
  const found = await queryForValues<RunRow>(
    tx,
    `select ${COLUMNS} from ${FROM} where ${conditions.filter(Boolean).join(' and ')}
     order by r.scheduled_for desc, r.id desc limit :limit`,
    {
      environmentId,
      syncJobId: filter.syncJobId ?? null,
      integratedAccountId: filter.integratedAccountId ?? null,
      triggerId: filter.triggerId ?? null,
      status: filter.status ?? null,
      scheduledFor: below?.scheduledFor ?? null,
      id: below?.id ?? null,
      limit,
    },
  )
  return found.map(withDestination)
}

/** Marks a run stopped that has left the queue. */
export async function markStopped(tx: Db, id: string, scheduledFor: Date): Promise<void> {
  await execute(
    tx,
    `update sync_job_run set status = 'stopped', finished_at = now(), updated_at = now(), version = version + 1
     where id = :id and scheduled_for = :scheduledFor and status in ('created', 'rate_limited')`,
    { id, scheduledFor },
  )
}

/**
 * Makes a failed or stopped run wait again: its attempts go on counting, and a decided ending is dropped. Undefined in any
 * other status.
 */
export async function requeueRun(tx: Db, run: RunRecord): Promise<RunRecord | undefined> {
  const again = await queryOne<RunRow>(
    tx,
    `with r as (
       update sync_job_run set status = 'created', error = null, finished_at = null,
         updated_at = now(), version = version + 1
       where id = :id and scheduled_for = :scheduledFor and status in ('failed', 'stopped') returning *
     ), reopened as (
       update run_checkpoint set ending = null where run_id = (select id from r)
     )
     select ${COLUMNS} from r left join run_checkpoint c on c.run_id = r.id`,
    { id: run.id, scheduledFor: run.scheduledFor },
  )
  return again && withDestination(again)
}

/** The two columns in which a destination is stored; one of them is null. */
export interface DestinationColumns {
  readonly groupKey: string | null
  readonly webhookId: string | null
}

export function destinationColumns(destination: RunDestination): DestinationColumns {
  if (destination.kind === 'daemon') return { groupKey: destination.groupKey, webhookId: null }
  return { groupKey: null, webhookId: destination.webhookId }
}

/** The row with its destination; its columns stay, which costs a tenth of a copy without them. */
export function withDestination<Row extends DestinationColumns>(row: Row) {
  return { ...row, destination: destinationFromColumns(row.groupKey, row.webhookId) }
}

function destinationFromColumns(groupKey: string | null, webhookId: string | null): RunDestination {
  if (webhookId !== null) return { kind: 'webhook', webhookId }
  if (groupKey !== null) return { kind: 'daemon', groupKey }
  throw new Error('a row without a destination')
}

/** Names a run with its day, so that one partition is read. */
export interface RunKey {
  readonly id: string
  readonly scheduledFor: Date
}

/**
 * The versions of runs, progress included; a run that does not exist is not in the answer. One statement over primary keys,
 * however many runs, which reads none of their wide columns.
 */
export async function findRunVersions(tx: Db, runs: readonly RunKey[]): Promise<ReadonlyMap<string, number>> {
  const found = await query<{ readonly id: string; readonly version: number }>(
    tx,
    `select r.id, r.version + coalesce(c.saves, 0) as version
     from ${KEYS.rows}
       join sync_job_run r on r.id = v.id and r.scheduled_for = v.scheduled_for
       left join run_checkpoint c on c.run_id = r.id`,
    KEYS.of(runs),
  )
  return new Map(found.map(({ id, version }) => [id, version]))
}

/** Updates the status of a trigger's latest run, if the run still is the latest. */
export async function updateLastRunStatus(tx: Db, triggerId: string, runId: string, status: RunStatus): Promise<void> {
  await execute(
    tx,
    'update trigger_schedule set last_run_status = :status where trigger_id = :triggerId and last_run_id = :runId',
    { status, triggerId, runId },
  )
}
