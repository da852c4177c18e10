import { MicroBatcher } from '../../foundation/base/index.ts'
import { isDatabaseUnavailable } from '../../foundation/database/index.ts'
import type { Lease, Settled, Settlement } from '../../foundation/queue/index.ts'
import { HEARTBEAT_INTERVAL_MS, QUEUE_POLICY } from '../../foundation/queue/index.ts'
import type { RunLeases } from './executor.ts'
import { type QueuedRun, WEBHOOK_QUEUE_GROUP } from './run.ts'
import type { RunQueue } from './run-queue.ts'

/** Which runs a worker claims, and as whom. */
export interface QueueLeasesOptions {
  /** Names this process in leases. */
  readonly holder: string
  /** Only runs of accounts that live in one of these. Absent: all. */
  readonly regions?: readonly string[] | undefined
}

/** Runs that end while a transaction is under way share the next one: a worker of many short runs commits once per batch. */
const SETTLEMENTS_PER_TRANSACTION_MAX = 200
/** Pause before a write is repeated while the database is unavailable. */
const UNAVAILABLE_PAUSE_MS = 250

/** Leases on webhook runs, taken from the queue in the database. */
export function createQueueLeases(
  queue: Pick<RunQueue, 'claim' | 'save' | 'showWait' | 'heartbeat' | 'settle'>,
  { holder, regions }: QueueLeasesOptions,
): RunLeases<Lease<QueuedRun>> {
  const settlements = new MicroBatcher<Settlement, Settled>({
    concurrencyMax: 1,
    batchMax: SETTLEMENTS_PER_TRANSACTION_MAX,
    process: (batch) => queue.settle(batch),
  })
  return {
    heartbeatIntervalMs: HEARTBEAT_INTERVAL_MS,
    saveIntervalMs: 0,
    async claim(limit) {
      const runs = await queue.claim({ group: WEBHOOK_QUEUE_GROUP, holder, limit, regions })
      return { runs, leaseMs: QUEUE_POLICY.leaseMs, hasMore: runs.length === limit }
    },
    heartbeat: (runs) => queue.heartbeat(runs),
    save: (run, { checkpoint, stats, ending }) => queue.save(run, checkpoint, stats, ending),
    showWait: (run, ms) => queue.showWait(run, ms),
    async settle(run, outcome) {
      const settled = await settlements.run({ ...run, outcome })
      return settled.kind === 'settled' ? settled.status : undefined
    },
    retryDelayMs: (error) => (isDatabaseUnavailable(error) ? UNAVAILABLE_PAUSE_MS : undefined),
  }
}
