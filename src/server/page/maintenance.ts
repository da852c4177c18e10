import type { PollLoopSpec } from '../../foundation/base/index.ts'
import type { LogoDeps } from './logos.ts'
import { deleteUnusedLogos } from './sql.ts'

const INTERVAL_MS = 60 * 60 * 1_000
const BATCH = 200
/** Pictures that no page has shown for 30 days are deleted. */
const UNUSED_MS = 30 * 24 * 60 * 60 * 1_000

/** Deletes pictures that no page shows any more. */
export function logoCleaner({ database }: Pick<LogoDeps, 'database'>): PollLoopSpec {
  return {
    name: 'connect-logos',
    intervalMs: INTERVAL_MS,
    async runOnce() {
      return (await deleteUnusedLogos(database.pool, UNUSED_MS, BATCH)) === BATCH
    },
  }
}
