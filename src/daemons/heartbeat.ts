import type { HeartbeatResult, LeaseKey, RunQueue } from '../queue/index.ts'
import { type Database, findActiveLeases } from '../storage/index.ts'
import type { ClaimLongPolls } from './claim-waits.ts'
import { markDaemonSeen } from './daemon.ts'

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
