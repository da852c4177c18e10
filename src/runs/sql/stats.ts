import { query, queryOne, type Tx } from '../../database/index.ts'

/**
 * How long ago the oldest tick that waits came due, in seconds; 0 when none is due. Paused and parked triggers do not wait.
 *
 * One probe of the due index per shard, whatever the number of triggers.
 */
export async function findOldestDueAge(tx: Tx, shards: number): Promise<number> {
  const found = await queryOne<{ readonly seconds: number }>(
    tx,
    `select coalesce(greatest(0, extract(epoch from
       clock_timestamp() - min(head.next_fire_at))), 0)::float8 as seconds
     from generate_series(0, ? - 1) as shard cross join lateral (
       select s.next_fire_at from trigger_schedule s where s.shard = shard.shard::smallint and s.next_fire_at is not null
       order by s.next_fire_at, s.trigger_id limit 1
     ) head`,
    [shards],
  )
  return found?.seconds ?? 0
}

const GROUPS = ['webhook', 'daemon'] as const
const STATES = ['ready', 'later', 'held'] as const

/** How many runs of one kind of group wait or are held. */
export interface QueueDepth {
  readonly group: (typeof GROUPS)[number]
  readonly state: (typeof STATES)[number]
  readonly runs: number
}

/** Counts what waits and what is held, of all environments, zeros included. Reads the whole queue: some 0.1 s for a million runs. */
export async function countQueueDepth(tx: Tx): Promise<readonly QueueDepth[]> {
  const found = await query<QueueDepth>(
    tx,
    `select ${GROUP_KIND} as group, case when available_at <= now() then 'ready' else 'later' end as state,
       count(*) as runs from run_queue group by 1, 2
     union all select ${GROUP_KIND}, 'held', count(*) from run_lease group by 1`,
  )
  const runsOf = new Map(found.map(({ group, state, runs }) => [`${group} ${state}`, runs]))
  return GROUPS.flatMap((group) =>
    STATES.map((state) => ({ group, state, runs: runsOf.get(`${group} ${state}`) ?? 0 })),
  )
}

const GROUP_KIND = `case when queue_group = 'webhook' then 'webhook' else 'daemon' end`
