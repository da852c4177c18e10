import { newId, notFound } from '../../foundation/base/index.ts'
import {
  type Database,
  type Db,
  decodePageToken,
  type ListPage,
  type ListPageRequest,
  readPageSize,
  toPage,
} from '../../foundation/database/index.ts'
import {
  HEARTBEAT_INTERVAL_MS,
  type HeartbeatResult,
  type LeaseKey,
  QUEUE_POLICY,
} from '../../foundation/queue/index.ts'
import type { SyncableAccount } from '../../platform/accounts/index.ts'
import type { MappingFinder } from '../jobs/unified-nodes.ts'
import { daemonQueueGroup } from '../runs/run.ts'
import type { RunQueue } from '../runs/run-queue.ts'
import type { ClaimLongPolls } from './claim-long-polls.ts'
import {
  type ActiveDaemon,
  type DaemonGroupRecord,
  type DaemonRecord,
  deleteStaleDaemons,
  findActiveLeases,
  insertDaemon,
  type NewDaemon,
  selectDaemonGroups,
  selectDaemons,
  touchDaemon,
} from './sql.ts'

/** Interval of heartbeats that a daemon is asked for. */
export const HEARTBEAT_SECONDS = HEARTBEAT_INTERVAL_MS / 1_000
/** A lease expires after so long without a heartbeat. */
export const LEASE_SECONDS = QUEUE_POLICY.leaseMs / 1_000

/** `draining` claims no more runs; the leases of a `lost` daemon have expired. */
type DaemonStatus = 'online' | 'draining' | 'lost'

/** A registered daemon. */
export interface Daemon extends Omit<DaemonRecord, 'isDraining' | 'isLost'> {
  readonly status: DaemonStatus
}

/** Registers a daemon. @returns its id */
export async function registerDaemon(tx: Db, environmentId: string, daemon: Omit<NewDaemon, 'id' | 'environmentId'>) {
  const id = newId()
  await insertDaemon(tx, { ...daemon, id, environmentId })
  return id
}

/** Daemons of the environment below `before`, newest first. */
export async function listDaemons(
  tx: Db,
  environmentId: string,
  filter: { readonly groupKey?: string | undefined },
  { before, limit }: { readonly before: string | undefined; readonly limit: number },
): Promise<readonly Daemon[]> {
  const found = await selectDaemons(tx, environmentId, filter, QUEUE_POLICY.leaseMs, before, limit)
  return found.map(({ isDraining, isLost, ...daemon }) => {
    return { ...daemon, status: isLost ? 'lost' : isDraining ? 'draining' : 'online' }
  })
}

/**
 * Updates the time the daemon was last seen.
 *
 * @param isDraining absent: as in its last heartbeat
 * @throws Failure RESOURCE_NOT_FOUND
 */
export async function markDaemonSeen(
  tx: Db,
  environmentId: string,
  id: string,
  isDraining?: boolean,
): Promise<ActiveDaemon> {
  const seen = await touchDaemon(tx, environmentId, id, isDraining ?? null)
  if (seen === undefined) throw notFound('daemon', id)
  return seen
}

/** What the service's side of daemons needs. */
export interface DaemonsDeps {
  readonly database: Pick<Database, 'pool'>
  readonly queue: Pick<RunQueue, 'claim' | 'heartbeat' | 'save' | 'showWait' | 'settle'>
  readonly longPolls: ClaimLongPolls
  /** @throws Failure when the account may not be called */
  readonly loadAccount: (environmentId: string, integratedAccountId: string) => Promise<SyncableAccount>
  /** For the schemas of unified resources. */
  readonly mappings: MappingFinder
  /** Masks the secrets of an account in texts. */
  readonly redactor: (environmentId: string, integratedAccountId: string) => Promise<(text: string) => string>
  /** Called for a run that cannot be assigned because of a defect. */
  readonly onDefect: (error: unknown, runId: string) => void
}

/** A heartbeat of a daemon. */
export interface HeartbeatInput {
  readonly daemonId: string
  readonly isDraining: boolean
  /** Leases it holds as far as it knows. */
  readonly held: readonly LeaseKey[]
}

/** Whether one lease still holds. */
export type LeaseState = HeartbeatResult & LeaseKey

/**
 * Heartbeat: updates the time the daemon was last seen and renews its leases.
 *
 * @returns one state per lease, in the order given; a lease of another environment is lost like any that is not held
 * @throws Failure RESOURCE_NOT_FOUND for an unknown daemon; then nothing is renewed
 */
export async function heartbeat(
  { database, queue, longPolls }: Pick<DaemonsDeps, 'database' | 'queue' | 'longPolls'>,
  environmentId: string,
  { daemonId, isDraining, held }: HeartbeatInput,
): Promise<readonly LeaseState[]> {
  await markDaemonSeen(database.pool, environmentId, daemonId, isDraining)
  if (isDraining) longPolls.endWaitsOf(daemonId)
  const own = held.length === 0 ? [] : await findActiveLeases(database.pool, environmentId, held)
  const renewed = new Map((await queue.heartbeat(own)).map((state, index) => [own[index]?.leaseId, state]))
  return held.map(({ id, leaseId }) => ({ ...(renewed.get(leaseId) ?? { kind: 'lost', id }), id, leaseId }))
}

/** A daemon group with its counters. */
export type DaemonGroup = DaemonGroupRecord

/** A page of the groups that have daemons or unfinished runs, by key. @throws Failure PAGE_TOKEN_INVALID */
export async function listDaemonGroups(
  tx: Db,
  environmentId: string,
  request: ListPageRequest,
): Promise<ListPage<DaemonGroup>> {
  const query = { list: 'daemon_group', environment_id: environmentId }
  const size = readPageSize(request)
  const [after] = decodePageToken(query, request.pageToken, ['text']) ?? []
  const prefix = daemonQueueGroup(environmentId, '')
  const found = await selectDaemonGroups(tx, environmentId, prefix, QUEUE_POLICY.leaseMs, after?.toString(), size + 1)
  return toPage(query, found, size, ({ groupKey }) => [groupKey])
}

/** A daemon that was not seen for so long is deleted. */
const STALE_AFTER_MS = 24 * 60 * 60 * 1000
const PRUNE_BATCH = 1_000

/** Deletes daemons that were not seen for a day. @returns whether there may be more */
export async function pruneDaemons({ pool }: Pick<Database, 'pool'>): Promise<boolean> {
  return (await deleteStaleDaemons(pool, STALE_AFTER_MS, PRUNE_BATCH)) === PRUNE_BATCH
}
