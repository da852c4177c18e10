import {
  type DayTable,
  type Db,
  deleteBatchOfEnvironment,
  execute,
  query,
  queryOne,
} from '../../foundation/database/index.ts'

/** Whose states are counted. */
export type FigureKind = 'account' | 'trigger' | 'run' | 'delivery' | 'inbound_event'

/** So many rows of a kind are in a state. */
export interface FigureRecord {
  readonly kind: FigureKind
  readonly state: string
  readonly count: number
}

/**
 * The figures of an environment as of this statement, by kind and state; states without a row are absent. Uses the primary key of
 * `figure`, which has a row for each state and day, and figure_delta_of_environment, which has what was changed in the last
 * moments.
 */
export async function readFigures(tx: Db, environmentId: string): Promise<readonly FigureRecord[]> {
  return await query(
    tx,
    `select kind, state, sum(count)::float8 as count from (
       select kind, state, count from figure where environment_id = :environmentId
       union all select kind, state, delta from figure_delta where environment_id = :environmentId
     ) counted
     group by kind, state having sum(count) <> 0 order by kind, state`,
    { environmentId },
  )
}

/**
 * Folds at most `limit` deltas into the figures, in one statement; returns how many. Any number of workers fold at once: each takes
 * rows that no other has locked, and figures are locked in the order of their key. Environments are locked against their
 * deletion before: deltas of those that are gone are dropped.
 */
export async function foldFigures(tx: Db, limit: number): Promise<number> {
  const folded = await queryOne<{ readonly count: number }>(
    tx,
    `with taken as (
       delete from figure_delta where ctid = any(array(select ctid from figure_delta limit :limit for update skip locked))
       returning *
     ), owner as (
       select id from environment where id in (select environment_id from taken) order by id for key share
     ), folded as (
       insert into figure as held (environment_id, kind, day, state, count)
       select environment_id, kind, day, state, sum(delta) from taken join owner on owner.id = environment_id
       group by environment_id, kind, day, state having sum(delta) <> 0
       order by environment_id, kind, day, state
       on conflict (environment_id, kind, day, state) do update set count = held.count + excluded.count
     )
     select count(*)::integer as count from taken`,
    { limit },
  )
  return folded?.count ?? 0
}

/**
 * Deletes the figures of a UTC day whose rows were just dropped, and those of days before that have come to zero. Needs the
 * transaction that has locked the table of the rows, so that no delta of the day is written any more. Deltas first: that waits
 * for workers that fold some of the day. Uses figure_of_day.
 */
export async function deleteFiguresOfDay(tx: Db, kind: FigureKind, day: Date): Promise<void> {
  const parameters = { kind, day: day.toISOString().slice(0, 10) }
  await execute(tx, 'delete from figure_delta where kind = :kind and day = :day::date', parameters)
  await execute(
    tx,
    `delete from figure where kind = :kind and (day = :day::date or day < :day::date and count = 0)`,
    parameters,
  )
}

/** Requests of one environment, hour, installation and class. */
export interface CallHour {
  readonly environmentId: string
  /** Its first moment. */
  readonly hour: Date
  /** Undefined: sent for none. */
  readonly environmentIntegrationId: string | undefined
  readonly class: string
  /** How many took up to the first bound, up to the second, …, and longer than the last. */
  readonly counts: readonly number[]
}

/** Where a page of hours begins: below this key. */
export interface CallHourCursor {
  readonly hour: Date
  readonly environmentIntegrationId: string
  readonly class: string
}

/** Which hours to list; what is undefined does not restrict. */
export interface CallHourFilter {
  readonly environmentIntegrationId?: string | undefined
  /** Hours that begin at or after this moment. */
  readonly since?: Date | undefined
  /** Hours that begin before this moment. */
  readonly until?: Date | undefined
}

/** The table, partitioned by the day of the hour. */
export const CALL_HOUR_DAYS: DayTable = {
  name: 'call_hour',
  column: 'hour',
  lowest: (dayStart) => dayStart.toISOString(),
  storage: 'with (fillfactor = 70)',
}

/** Of requests that were sent for no installation: part of a primary key, which takes no null. */
export const NO_INSTALLATION = '00000000-0000-0000-0000-000000000000'

/** Adds to what is stored, in the order of the key, so that two processes do not deadlock. */
export async function addCallHours(tx: Db, hours: readonly CallHour[]): Promise<void> {
  await execute(
    tx,
    `insert into call_hour as held (environment_id, hour, environment_integration_id, class, counts)
     select e, h, n, c, b from json_to_recordset(:rows::json) as given (e uuid, h timestamptz, n uuid, c text, b bigint[])
     order by e, h, n, c
     on conflict (environment_id, hour, environment_integration_id, class) do update set counts = array(
       select a + b from unnest(held.counts, excluded.counts) with ordinality as bucket (a, b, place) order by place)`,
    { rows: JSON.stringify(hours.map(rowOf)) },
  )
}

/** The row under the short names of the statement above. */
function rowOf({ environmentId, hour, environmentIntegrationId = NO_INSTALLATION, class: ofClass, counts }: CallHour) {
  return { e: environmentId, h: hour, n: environmentIntegrationId, c: ofClass, b: counts }
}

/** A stored hour. */
export type StoredCallHour = Required<CallHour> & CallHourCursor

/**
 * At most `limit` hours of the environment below a key, newest first. Uses the primary keys of the days, of which there are eight:
 * with a filter by installation the hours of all others are skipped.
 */
export async function listCallHours(
  tx: Db,
  environmentId: string,
  filter: CallHourFilter,
  page: { readonly below: CallHourCursor | undefined; readonly limit: number },
): Promise<readonly StoredCallHour[]> {
  const { environmentIntegrationId, since, until } = filter
  const { below, limit } = page
  const hours = tx('call_hour').where({ environment_id: environmentId })
  if (environmentIntegrationId !== undefined) hours.where({ environment_integration_id: environmentIntegrationId })
  if (since !== undefined) hours.where('hour', '>=', since)
  if (until !== undefined) hours.where('hour', '<', until)
  if (below !== undefined)
    hours
      .where('hour', '<=', below.hour)
      .whereRaw('(hour, environment_integration_id, class) < (?::timestamptz, ?::uuid, ?)', [
        below.hour,
        below.environmentIntegrationId,
        below.class,
      ])
  return await hours
    .orderBy([
      { column: 'hour', order: 'desc' },
      { column: 'environment_integration_id', order: 'desc' },
      { column: 'class', order: 'desc' },
    ])
    .limit(limit)
    .select('environment_id', 'hour', 'environment_integration_id', 'class', tx.raw('counts::float8[] as counts'))
}

/** Deletes the hours of an environment, a batch; returns whether there are no more. Figures go with its row. */
export async function deleteCallHoursOfEnvironment(tx: Db, environmentId: string): Promise<boolean> {
  return await deleteBatchOfEnvironment(tx, ['call_hour'], environmentId)
}
