import { newId, notFound } from '../base/index.ts'
import { HEARTBEAT_INTERVAL_MS, QUEUE_POLICY } from '../queue/index.ts'
import {
  type ActiveDaemon,
  type DaemonRecord,
  insertDaemon,
  selectDaemons as listDaemonRecords,
  type NewDaemon,
  type Tx,
  touchDaemon,
} from '../storage/index.ts'

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
