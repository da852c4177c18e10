import { query, type Tx } from '../database.ts'

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
