import type { JsonObject } from '../../base/index.ts'
import { execute, jsonb, query, queryOne, type Tx } from '../../database/index.ts'
import type { ErrorHandling, ResourceStats, Run, RunDestination, RunError, RunKind, RunStatus } from '../run.ts'

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
const COLUMNS = `r.id, r.environment_id as "environmentId", r.sync_job_id as "syncJobId",
  r.integrated_account_id as "integratedAccountId", r.trigger_id as "triggerId", r.kind, r.status,
  r.skip_reason as "skipReason", r.args, r.resources, r.daemon_group_key as "groupKey", r.webhook_id as "webhookId",
  r.error_handling as "errorHandling", r.ignore_previous_run as "ignorePreviousRun", r.scheduled_for as "scheduledFor",
  r.started_at as "startedAt", r.finished_at as "finishedAt", r.created_at as "createdAt",
  greatest(r.updated_at, c.saved_at) as "updatedAt", coalesce(c.resource_stats, r.resource_stats) as "resourceStats",
  r.error, r.attempt, r.version + coalesce(c.saves, 0) as version, r.region`
const FROM = 'sync_job_run r left join run_checkpoint c on c.run_id = r.id'

/** A run with the region its account lives in. */
export type RunRecord = Run & { readonly region: string }

interface RunRow {
  readonly id: string
  readonly environmentId: string
  readonly syncJobId: string
  readonly integratedAccountId: string
  readonly triggerId: string | null
  readonly kind: RunKind
  readonly status: RunStatus
  readonly skipReason: string | null
  readonly args: JsonObject
  readonly resources: readonly JsonObject[]
  readonly groupKey: string | null
  readonly webhookId: string | null
  readonly errorHandling: ErrorHandling
  readonly ignorePreviousRun: boolean
  readonly scheduledFor: Date
  readonly startedAt: Date | null
  readonly finishedAt: Date | null
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly resourceStats: readonly ResourceStats[]
  readonly error: RunError | null
  readonly attempt: number
  readonly version: number
  readonly region: string
}

/**
 * Stores a run that somebody asked for.
 *
 * `scheduled_for` is now, or the first free millisecond after it: the tick index holds for manual runs too, and nobody
 * should be refused for asking in the same millisecond as another.
 */
export async function insertManualRun(tx: Tx, run: NewRun): Promise<RunRecord> {
  const inserted = await queryOne<RunRow>(
    tx,
    `with recursive free (at) as (
       select date_trunc('milliseconds', clock_timestamp())
       union all
       select at + interval '1 millisecond' from free
       where exists (select from sync_job_run t where t.trigger_id = ? and t.scheduled_for = free.at and t.kind = 'manual')
     ), r as (
       insert into sync_job_run (id, scheduled_for, environment_id, trigger_id, kind, sync_job_id, integrated_account_id,
         region, status, daemon_group_key, webhook_id, resources, args, error_handling, ignore_previous_run)
       select ?, (select max(at) from free), ?, ?, 'manual', ?, ?, ?, 'created', ?, ?, ?::jsonb, ?::jsonb, ?, ?
       returning *
     )
     select ${COLUMNS} from r left join run_checkpoint c on c.run_id = r.id`,
    [
      run.triggerId,
      run.id,
      run.environmentId,
      run.triggerId,
      run.syncJobId,
      run.integratedAccountId,
      run.region,
      ...destinationColumns(run.destination),
      jsonb(run.resources),
      jsonb(run.args),
      run.errorHandling,
      run.ignorePreviousRun,
    ],
  )
  if (inserted === undefined) throw new Error('an insert returned no row')
  return runFromRow(inserted)
}

/** One run with its progress. Rides on the primary key of every partition, since an id does not tell its day. */
export async function findRun(tx: Tx, environmentId: string, id: string): Promise<RunRecord | undefined> {
  const found = await queryOne<RunRow>(tx, `select ${COLUMNS} from ${FROM} where r.id = ? and r.environment_id = ?`, [
    id,
    environmentId,
  ])
  return found && runFromRow(found)
}

/** Those of the runs that there are, in any order. One statement over primary keys, one partition each. */
export async function findRuns(tx: Tx, keys: readonly RunKey[]): Promise<readonly RunRecord[]> {
  const found = await query<RunRow>(
    tx,
    `select ${COLUMNS} from unnest(?::uuid[], ?::timestamptz[]) as v (id, scheduled_for)
       join (${FROM}) on r.id = v.id and r.scheduled_for = v.scheduled_for`,
    [keys.map(({ id }) => id), keys.map(({ scheduledFor }) => scheduledFor)],
  )
  return found.map(runFromRow)
}

/** Runs below a position, newest tick first. Rides on the tick, account or newest index, whichever the filter suits. */
export async function listRuns(
  tx: Tx,
  environmentId: string,
  filter: RunFilter,
  below: RunCursor | undefined,
  limit: number,
): Promise<readonly RunRecord[]> {
  const conditions = [
    ['r.environment_id = ?', environmentId],
    ['r.sync_job_id = ?', filter.syncJobId],
    ['r.integrated_account_id = ?', filter.integratedAccountId],
    ['r.trigger_id = ?', filter.triggerId],
    ['r.status = ?', filter.status],
    ['r.scheduled_for <= ?', below?.scheduledFor],
  ] as const
  const given = conditions.flatMap(([sql, value]) => (value === undefined ? [] : [{ sql, value }]))
  const found = await query<RunRow>(
    tx,
    `select ${COLUMNS} from ${FROM} where ${given.map(({ sql }) => sql).join(' and ')}
       and (?::timestamptz is null or (r.scheduled_for, r.id) < (?::timestamptz, ?::uuid))
     order by r.scheduled_for desc, r.id desc limit ?`,
    [
      ...given.map(({ value }) => value),
      below?.scheduledFor ?? null,
      below?.scheduledFor ?? null,
      below?.id ?? null,
      limit,
    ],
  )
  return found.map(runFromRow)
}

/** Marks a run that has left the queue stopped; undefined when it was not waiting. */
export async function markStopped(tx: Tx, id: string, scheduledFor: Date): Promise<void> {
  await query(
    tx,
    `update sync_job_run set status = 'stopped', finished_at = now(),
       updated_at = now(), version = version + 1
     where id = ? and scheduled_for = ? and status in ('created', 'rate_limited')`,
    [id, scheduledFor],
  )
}

/** Makes a failed or stopped run wait again; its attempts are counted on, and an ending that
 * was decided is taken back. Undefined in any other status. */
export async function requeueRun(tx: Tx, run: RunRecord): Promise<RunRecord | undefined> {
  const again = await queryOne<RunRow>(
    tx,
    `with r as (
       update sync_job_run set status = 'created', error = null, finished_at = null,
         updated_at = now(), version = version + 1
       where id = ? and scheduled_for = ? and status in ('failed', 'stopped') returning *
     ), goes_on as (
       update run_checkpoint set ending = null where run_id = (select id from r)
     )
     select ${COLUMNS} from r left join run_checkpoint c on c.run_id = r.id`,
    [run.id, run.scheduledFor],
  )
  return again && runFromRow(again)
}

/** The two columns a destination is stored in: daemon group key, webhook id. */
export function destinationColumns(destination: RunDestination): [string | null, string | null] {
  return destination.kind === 'daemon' ? [destination.groupKey, null] : [null, destination.webhookId]
}

/** The destination two columns hold; one of them is never null. */
export function destinationFromColumns(groupKey: string | null, webhookId: string | null): RunDestination {
  if (webhookId !== null) return { kind: 'webhook', webhookId }
  if (groupKey !== null) return { kind: 'daemon', groupKey }
  throw new Error('a row without a destination')
}

function runFromRow({ groupKey, webhookId, ...run }: RunRow): RunRecord {
  return { ...run, destination: destinationFromColumns(groupKey, webhookId) }
}

/** Names a run together with its day, so that one partition is looked into. */
export interface RunKey {
  readonly id: string
  readonly scheduledFor: Date
}

/**
 * The versions of runs, progress included; a run that is gone is not in the answer. One statement over primary keys, whatever
 * the number of runs, and none of their wide columns.
 */
export async function findRunVersions(tx: Tx, runs: readonly RunKey[]): Promise<ReadonlyMap<string, number>> {
  const found = await query<{ readonly id: string; readonly version: number }>(
    tx,
    `select r.id, r.version + coalesce(c.saves, 0) as version
     from unnest(?::uuid[], ?::timestamptz[]) as v (id, scheduled_for)
       join sync_job_run r on r.id = v.id and r.scheduled_for = v.scheduled_for
       left join run_checkpoint c on c.run_id = r.id`,
    [runs.map(({ id }) => id), runs.map(({ scheduledFor }) => scheduledFor)],
  )
  return new Map(found.map(({ id, version }) => [id, version]))
}

/** Updates the status of its latest run on a trigger, while it still is the latest. */
export async function updateLastRunStatus(tx: Tx, triggerId: string, runId: string, status: RunStatus): Promise<void> {
  await execute(tx, 'update trigger_schedule set last_run_status = ? where trigger_id = ? and last_run_id = ?', [
    status,
    triggerId,
    runId,
  ])
}
