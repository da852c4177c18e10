import { type Db, execute, query, rowSet } from '../../../foundation/database/index.ts'

/** Null object for "no trigger": a primary key cannot hold null. */
const NO_TRIGGER = '00000000-0000-0000-0000-000000000000'

/**
 * Overlap of two incremental syncs: changes that the upstream made visible late, or that its clock dates before ours, are read
 * again.
 */
const OVERLAP = `interval '2 minutes'`

/** Days that rows of runs without a trigger are kept after their run began; then everything is read again. */
const KEPT_DAYS = 400
/** Rows kept of a trigger, or of a job and account without one: twice the nodes of a job, of which changed arguments make others. */
export const PREVIOUS_RUNS_MAX = 2_000

const KEYS = rowSet(
  `environment_id uuid, sync_job_id uuid, integrated_account_id uuid, trigger_id uuid, resource_key text`,
)
const RUNS =
  rowSet(`environment_id uuid, sync_job_id uuid, integrated_account_id uuid, trigger_id uuid, resource_key text,
  started_at timestamptz`)

/** One resource of the runs of a trigger, or of a job and account without one. */
export interface PreviousRunKey {
  readonly environmentId: string
  readonly syncJobId: string
  readonly integratedAccountId: string
  readonly triggerId: string | null
  /** What is read and where it goes, see `resourceKeys`. */
  readonly resourceKey: string
}

/** A run that has read all of a resource and delivered it. */
export interface PreviousRun extends PreviousRunKey {
  readonly startedAt: Date
}

/**
 * The date from which on each of the resources has to be read, in the order given; `null` where all of it has to be.
 * Rides on the primary key.
 */
export async function findPreviousRunDates(tx: Db, keys: readonly PreviousRunKey[]): Promise<readonly (Date | null)[]> {
  if (keys.length === 0) return []
  const found = await query<{ readonly date: Date | null }>(
    tx,
    `select p.started_at - ${OVERLAP} as date
     from ${KEYS.unnest} with ordinality as v (${KEYS.columns}, place)
     left join previous_run p using (${KEYS.columns})
     order by v.place`,
    KEYS.of(keys.map(withTriggerId)),
  )
  return found.map(({ date }) => date)
}

/**
 * Records which runs have read all of a resource. A date only advances: runs of one account end in order, but an old one
 * that is retried may end late. Rows are locked in the order of the primary key. New ones take the place of those that have not
 * moved for the longest time, beyond `PREVIOUS_RUNS_MAX`.
 */
export async function advancePreviousRuns(tx: Db, runs: readonly PreviousRun[]): Promise<void> {
  if (runs.length === 0) return
  await execute(
    tx,
    `with advanced as (insert into previous_run as p (${RUNS.columns})
     select ${KEYS.columns}, max(started_at) from ${RUNS.rows}
     group by 1, 2, 3, 4, 5 order by 1, 2, 3, 4, 5
     on conflict (${KEYS.columns}) do update set started_at = greatest(p.started_at, excluded.started_at)
       returning environment_id, sync_job_id, integrated_account_id, trigger_id, xmax = 0 as is_new
     ), grown as (
       select distinct environment_id, sync_job_id, integrated_account_id, trigger_id from advanced where is_new
     )
     delete from previous_run p using grown, lateral (
       select resource_key from previous_run k
       where k.environment_id = grown.environment_id and k.sync_job_id = grown.sync_job_id
         and k.integrated_account_id = grown.integrated_account_id and k.trigger_id = grown.trigger_id
       order by k.started_at desc offset ${PREVIOUS_RUNS_MAX}
     ) old
     where p.environment_id = grown.environment_id and p.sync_job_id = grown.sync_job_id
       and p.integrated_account_id = grown.integrated_account_id and p.trigger_id = grown.trigger_id
       and p.resource_key = old.resource_key`,
    RUNS.of(runs.map(withTriggerId)),
  )
}

/**
 * Deletes rows of runs without a trigger that have not moved for `KEPT_DAYS`, at most `limit`; returns how many. Rides on
 * previous_run_without_trigger.
 */
export async function deleteExpiredPreviousRuns(tx: Db, limit: number): Promise<number> {
  return await execute(
    tx,
    `delete from previous_run where ctid = any(array(
       select ctid from previous_run
       where trigger_id = '${NO_TRIGGER}'
         and started_at < now() - interval '${KEPT_DAYS} days'
       limit :limit))`,
    { limit },
  )
}

function withTriggerId<Key extends PreviousRunKey>(key: Key) {
  return { ...key, triggerId: key.triggerId ?? NO_TRIGGER }
}
