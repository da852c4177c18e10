import type { PollLoopSpec } from '../base/index.ts'
import type { Database } from '../database/index.ts'
import { deleteExpiredClaims, deleteShortLived } from './sql/maintenance.ts'

const CLEAN_INTERVAL_MS = 60_000
const CLEAN_BATCH = 1_000
/** Rejected requests and handshakes are kept so long. */
const SHORT_LIVED_MS = 24 * 60 * 60 * 1_000

/** Deletes dedupe keys whose window is over, and rejected requests and handshakes after a day. */
export function inboundCleaner({ pool }: Pick<Database, 'pool'>): PollLoopSpec {
  return {
    name: 'inbound-cleaner',
    intervalMs: CLEAN_INTERVAL_MS,
    async runOnce() {
      const claims = await deleteExpiredClaims(pool, CLEAN_BATCH)
      const requests = await deleteShortLived(pool, SHORT_LIVED_MS, CLEAN_BATCH)
      return claims === CLEAN_BATCH || requests === CLEAN_BATCH
    },
  }
}
