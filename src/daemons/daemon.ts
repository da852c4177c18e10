import { newId, notFound } from '../base/index.ts'
import {
  type Database,
  decodePageToken,
  type ListPage,
  type ListPageRequest,
  readPageSize,
  type Tx,
  toPage,
} from '../database/index.ts'
import {
  daemonQueueGroup,
  HEARTBEAT_INTERVAL_MS,
  type HeartbeatResult,
  type LeaseKey,
  QUEUE_POLICY,
  type RunQueue,
} from '../runs/index.ts'
import type { ClaimLongPolls } from './claim-long-polls.ts'
import {
  type ActiveDaemon,
  type DaemonGroupRecord,
  type DaemonRecord,
  deleteStaleDaemons,
  findActiveLeases,
  insertDaemon,
  selectDaemons as listDaemonRecords,
  selectDaemonGroups as listGroupRecords,
  type NewDaemon,
  touchDaemon,
} from './sql.ts'

/** How often daemons are to be heard of. */
export const HEARTBEAT_SECONDS = HEARTBEAT_INTERVAL_MS / 1_000
/** How long what they hold is theirs without that. */
export const LEASE_SECONDS = QUEUE_POLICY.leaseMs / 1_000

/** Whether a daemon takes runs; whatever a lost one held is with others. */
type DaemonStatus = 'online' | 'draining' | 'lost'

/** A daemon as it stands now. */
export interface Daemon extends Omit<DaemonRecord, 'isDraining' | 'isLost'> {
  readonly status: DaemonStatus
}

/** Makes a process known; returns the id it goes by from now on. */
export async function registerDaemon(tx: Tx, environmentId: string, daemon: Omit<NewDaemon, 'id' | 'environmentId'>) {
  const id = newId()
  await insertDaemon(tx, { ...daemon, id, environmentId })
  return id
}

/** Daemons of the environment below `before`, newest first. */
export async function listDaemons(
  tx: Tx,
  environmentId: string,
  filter: { readonly groupKey?: string | undefined },
  { before, limit }: { readonly before: string | undefined; readonly limit: number },
): Promise<readonly Daemon[]> {
  const found = await listDaemonRecords(tx, environmentId, filter, QUEUE_POLICY.leaseMs, before, limit)
  return found.map(({ isDraining, isLost, ...daemon }) => {
    return { ...daemon, status: isLost ? 'lost' : isDraining ? 'draining' : 'online' }
  })
}

/**
 * Notes that a daemon lives.
 *
 * @param isDraining undefined: as it said last
 * @throws Failure RESOURCE_NOT_FOUND
 */
export async function markDaemonSeen(
  tx: Tx,
  environmentId: string,
  id: string,
  isDraining?: boolean,
): Promise<ActiveDaemon> {
  const seen = await touchDaemon(tx, environmentId, id, isDraining ?? null)
  if (seen === undefined) throw notFound('daemon', id)
  return seen
}

/** What heartbeats need. */
export interface HeartbeatDeps {
  readonly database: Pick<Database, 'pool'>
  readonly queue: Pick<RunQueue, 'heartbeat'>
  readonly waits: Pick<ClaimLongPolls, 'release'>
}

/** What a daemon says of itself. */
export interface HeartbeatInput {
  readonly daemonId: string
  readonly isDraining: boolean
  /** What it believes to hold. */
  readonly held: readonly LeaseKey[]
}

/** What has become of one lease. */
export type LeaseState = HeartbeatResult & LeaseKey

/**
 * Notes that a daemon lives and renews what it holds.
 *
 * @returns one state per lease, in the order given; a lease of another environment is lost like any that is not held
 * @throws Failure RESOURCE_NOT_FOUND for an unknown daemon; then nothing is renewed
 */
export async function heartbeat(
  { database, queue, waits }: HeartbeatDeps,
  environmentId: string,
  { daemonId, isDraining, held }: HeartbeatInput,
): Promise<readonly LeaseState[]> {
  await markDaemonSeen(database.pool, environmentId, daemonId, isDraining)
  if (isDraining) waits.release(daemonId)
  const own = held.length === 0 ? [] : await findActiveLeases(database.pool, environmentId, held)
  const renewed = new Map((await queue.heartbeat(own)).map((state, place) => [own[place]?.leaseId, state]))
  return held.map(({ id, leaseId }) => ({ ...(renewed.get(leaseId) ?? { kind: 'lost', id }), id, leaseId }))
}

/** The daemons that share the runs of one key, and how these stand. */
export type DaemonGroup = DaemonGroupRecord

/** A page of groups that have daemons, or runs that wait or run, by key. @throws Failure PAGE_TOKEN_INVALID */
export async function listDaemonGroups(
  tx: Tx,
  environmentId: string,
  request: ListPageRequest,
): Promise<ListPage<DaemonGroup>> {
  const query = { list: 'daemon_group', environment_id: environmentId }
  const size = readPageSize(request)
  const [after] = decodePageToken(query, request.pageToken, ['text']) ?? []
  const prefix = daemonQueueGroup(environmentId, '')
  const found = await listGroupRecords(tx, environmentId, prefix, QUEUE_POLICY.leaseMs, after?.toString(), size + 1)
  return toPage(query, found, size, ({ groupKey }) => [groupKey])
}

/** A daemon that was not heard of for so long is not coming back. */
const STALE_AFTER_MS = 24 * 60 * 60 * 1000
const PRUNE_BATCH = 1_000

/** Forgets daemons that have not been heard of for a day. @returns whether there may be more */
export async function pruneDaemons({ pool: direct }: Pick<Database, 'pool'>): Promise<boolean> {
  return (await deleteStaleDaemons(direct, STALE_AFTER_MS, PRUNE_BATCH)) === PRUNE_BATCH
}
