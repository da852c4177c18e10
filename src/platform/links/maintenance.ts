import type { PollLoopSpec } from '../../foundation/base/index.ts'
import { type SessionDependencies, settleSession } from './load-session.ts'
import { deleteEndedSessions, listDueSessions } from './sql/link-session.ts'

const INTERVAL_MS = 30_000
const BATCH = 200
/** Sessions that have ended are kept for 30 days. */
const KEEP_MS = 30 * 24 * 60 * 60 * 1_000

/** Ends sessions whose time is over and exchanges whose process died, and deletes old sessions with their secrets. */
export function linkSessionCleaner(deps: SessionDependencies): PollLoopSpec {
  return {
    name: 'link-sessions',
    intervalMs: INTERVAL_MS,
    async runOnce() {
      const due = await listDueSessions(deps.database.pool, BATCH)
      for (const session of due) await settleSession(deps, session)
      const deleted = await deleteEndedSessions(deps.database.pool, KEEP_MS, BATCH)
      return due.length >= BATCH || deleted === BATCH
    },
  }
}
