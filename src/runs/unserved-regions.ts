import type { PollLoopSpec } from '../base/index.ts'
import type { Database, Db } from '../database/index.ts'
import { QUEUE_POLICY } from './retry-policy.ts'
import { WEBHOOK_QUEUE_GROUP } from './run.ts'
import { countUnservedWork, type UnservedWork } from './sql/unserved-work.ts'

/** Work is begun within seconds where a worker serves its region. */
const WAITING_MS = 60_000
const CHECK_INTERVAL_MS = 60_000

/** What waits for over a minute in regions that no worker serves; empty while every such region is served. */
export async function findUnservedWork(tx: Db): Promise<readonly UnservedWork[]> {
  return await countUnservedWork(tx, WEBHOOK_QUEUE_GROUP, QUEUE_POLICY.leaseMs, WAITING_MS)
}

/** Looks for such work every minute. @param onFound called with what was found, never with nothing */
export function unservedRegionMonitor(
  { pool }: Pick<Database, 'pool'>,
  onFound: (work: readonly UnservedWork[]) => void,
): PollLoopSpec {
  return {
    name: 'unserved-regions',
    intervalMs: CHECK_INTERVAL_MS,
    async runOnce() {
      const found = await findUnservedWork(pool)
      if (found.length > 0) onFound(found)
      return false
    },
  }
}
