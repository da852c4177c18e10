import { type Db, execute, query, queryOne, rowSet } from '../../database/index.ts'
import type { LeaseKey, QueueTable } from './queue.ts'

/** The queue of sync runs. The unique index run_lease_account allows an account one running run. */
export const RUN_QUEUE: QueueTable = {
  waiting: 'run_queue',
  lease: 'run_lease',
  id: 'run_id',
  key: 'integrated_account_id',
  payload: 'scheduled_for, trigger_id',
}

/** The payload of a run in its queue. */
export interface RunPayload {
  readonly scheduledFor: Date
  readonly triggerId: string | null
}

/** What a request to stop a run found. */
export interface StopFound {
  /** Set when the run waited and has left the queue. */
  readonly scheduledFor: Date | null
  readonly triggerId: string | null
  /** The run is leased; its holder learns of the request with its next heartbeat. */
  readonly isHeld: boolean
}

/**
 * Takes a waiting run out of the queue, or marks its lease as asked to stop (the first request counts).
 *
 * Finds neither while a claim moves the run: ask again. Rides on both primary keys.
 */
export async function requestStop(tx: Db, environmentId: string, runId: string): Promise<StopFound | undefined> {
  return await queryOne(
    tx,
    `with waiting as (
       delete from run_queue where run_id = :runId and environment_id = :environmentId
       returning scheduled_for, trigger_id
     ), held as (
       update run_lease set stop_requested_at = coalesce(stop_requested_at, now())
       where run_id = :runId and environment_id = :environmentId returning run_id
     )
     select scheduled_for, trigger_id, false as is_held from waiting
     union all select null, null, true from held`,
    { runId, environmentId },
  )
}

const LEASES = rowSet('id uuid, lease_id uuid')

/** Deletes leases without settling anything, for runs whose record was dropped. */
export async function dropLeases(tx: Db, leases: readonly LeaseKey[]): Promise<void> {
  await execute(
    tx,
    `delete from run_lease l using ${LEASES.rows} where l.run_id = v.id and l.lease_id = v.lease_id`,
    LEASES.of(leases),
  )
}

const GROUPS = ['webhook', 'daemon'] as const
const STATES = ['ready', 'later', 'held'] as const

/** How many runs of one kind of queue group wait or are leased. */
export interface QueueDepth {
  readonly group: (typeof GROUPS)[number]
  readonly state: (typeof STATES)[number]
  readonly runs: number
}

const GROUP_KIND = `case when queue_group = 'webhook' then 'webhook' else 'daemon' end`

/** Queue depth over all environments, zeros included. Reads the whole queue: some 0.1 s for a million runs. */
export async function countQueueDepth(tx: Db): Promise<readonly QueueDepth[]> {
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
