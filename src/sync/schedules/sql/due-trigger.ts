import { type Db, query, queryOne } from '../../../foundation/database/index.ts'
import type { RunDestination } from '../../runs/run.ts'
import { type DestinationColumns, withDestination } from '../../runs/sql/run.ts'

/** Key in the due index of a shard; what lies above it is unread. */
export interface DueCursor {
  readonly at: Date
  readonly triggerId: string
}

/** The earliest tick of a shard above a cursor. */
export interface NextDue {
  readonly shard: number
  /** Null: nothing is scheduled in the shard. */
  readonly nextFireAt: Date | null
  readonly now: Date
}

/** A locked trigger whose tick is due, with what decides whether the tick runs. */
export interface DueTrigger {
  readonly triggerId: string
  readonly environmentId: string
  readonly region: string
  readonly cronExpression: string
  /** The tick that is due. */
  readonly nextFireAt: Date
  readonly integratedAccountId: string
  readonly destination: RunDestination
  readonly accountStatus: string
  readonly isIntegrationEnabled: boolean
  /** The account is being deleted with its installation. */
  readonly isBeingDeleted: boolean
  /** Runs of the trigger that wait or run. */
  readonly activeRuns: number
}

type DueRow = Omit<DueTrigger, 'destination'> & DestinationColumns

/** Columns of a due trigger; `due` is a CTE of locked trigger_schedule rows. */
const DUE_COLUMNS = `due.trigger_id, due.environment_id, due.region,
  due.cron_expression, due.next_fire_at, t.integrated_account_id, t.daemon_group_key as group_key, t.webhook_id,
  a.status as account_status, e.is_enabled as is_integration_enabled, e.is_hidden as is_being_deleted,
  (select count(*) from run_queue q where q.integrated_account_id = t.integrated_account_id and q.trigger_id = t.id)
  + (select count(*) from run_lease l where l.integrated_account_id = t.integrated_account_id and l.trigger_id = t.id)
    as active_runs`
const DUE_JOINS = `due
  join sync_job_cron_trigger t on t.environment_id = due.environment_id and t.id = due.trigger_id
  join integrated_account a on a.environment_id = t.environment_id and a.id = t.integrated_account_id
  join environment_integration e on e.environment_id = a.environment_id and e.id = a.environment_integration_id`

/**
 * The next tick of each shard above its cursor, and the database's clock. One probe of the due index per shard.
 *
 * @param regions only triggers of these regions; null: of any
 */
export async function findNextDue(
  tx: Db,
  cursors: ReadonlyMap<number, DueCursor>,
  regions: readonly string[] | null,
): Promise<readonly NextDue[]> {
  const low = [...cursors.values()]
  return await query(
    tx,
    `select v.shard, head.next_fire_at, clock_timestamp()::timestamptz(3) as now
     from unnest(:shards::smallint[], :lowAt::timestamptz[], :lowIds::uuid[]) as v (shard, low_at, low_id)
     left join lateral (
       select s.next_fire_at from trigger_schedule s
       where s.shard = v.shard and s.next_fire_at is not null and (s.next_fire_at, s.trigger_id) > (v.low_at, v.low_id)
         ${regions === null ? '' : 'and s.region = any(:regions::text[])'}
       order by s.next_fire_at, s.trigger_id limit 1
     ) head on true`,
    {
      shards: [...cursors.keys()],
      lowAt: low.map(({ at }) => at),
      lowIds: low.map(({ triggerId }) => triggerId),
      regions,
    },
  )
}

/**
 * Locks due triggers of one shard above a cursor, earliest first; passes over rows that another worker or a PATCH has locked.
 *
 * A range of the due index (shard, next_fire_at, trigger_id, region), bounded on both sides: index entries of ticks that already
 * fired lie below the cursor, so that a held-back vacuum does not slow the claim. Regions are compared in the index.
 *
 * Parameters are read through subqueries, which hide their values from the planner. A plan for the values of a small batch
 * looks cheaper than the generic plan, so that each batch would be planned anew: 0.8 ms, where firing its ticks takes 0.5 ms.
 */
export async function claimDueTriggers(
  tx: Db,
  shard: number,
  above: DueCursor,
  until: Date,
  regions: readonly string[] | null,
  limit: number,
): Promise<readonly DueTrigger[]> {
  const found = await query<DueRow>(
    tx,
    `with due as materialized (
       select s.* from trigger_schedule s
       where s.shard = (select :shard::smallint) and s.next_fire_at <= (select :until::timestamptz)
         and (s.next_fire_at, s.trigger_id) > ((select :aboveAt::timestamptz), (select :aboveId::uuid))
         ${regions === null ? '' : 'and s.region = any((select :regions::text[])::text[])'}
       order by s.next_fire_at, s.trigger_id limit (select :limit::bigint) for update skip locked
     )
     select ${DUE_COLUMNS} from ${DUE_JOINS} order by due.next_fire_at, due.trigger_id`,
    { shard, until, aboveAt: above.at, aboveId: above.triggerId, regions, limit },
  )
  return found.map(withDestination)
}

/** One trigger as `claimDueTriggers` returns it, when its tick is due; the caller has locked its schedule. */
export async function findDueTrigger(tx: Db, triggerId: string, until: Date): Promise<readonly DueTrigger[]> {
  const found = await query<DueRow>(
    tx,
    `with due as (select s.* from trigger_schedule s where s.trigger_id = :triggerId and s.next_fire_at <= :until)
     select ${DUE_COLUMNS} from ${DUE_JOINS}`,
    { triggerId, until },
  )
  return found.map(withDestination)
}

/**
 * Age of the oldest due tick, in seconds; 0 when none is due. Paused and suspended triggers have none.
 *
 * One probe of the due index per shard, however many triggers there are.
 */
export async function findOldestDueAge(tx: Db, shards: number): Promise<number> {
  const found = await queryOne<{ readonly seconds: number }>(
    tx,
    `select coalesce(greatest(0, extract(epoch from clock_timestamp() - min(head.next_fire_at))), 0)::float8 as seconds
     from generate_series(0, :shards - 1) as shard cross join lateral (
       select s.next_fire_at from trigger_schedule s where s.shard = shard.shard::smallint and s.next_fire_at is not null
       order by s.next_fire_at, s.trigger_id limit 1
     ) head`,
    { shards },
  )
  return found?.seconds ?? 0
}
