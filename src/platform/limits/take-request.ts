import type { Pool } from '../../foundation/database/index.ts'
import { waitMs } from './call-limiter.ts'
import { findWindowState, type RateLimitWindow, takeFromWindow } from './sql.ts'

/** Takes one request from a sliding window, shared by all processes. @returns the ms to wait; `undefined` when it was taken */
export async function takeRequest(pool: Pool, window: RateLimitWindow): Promise<number | undefined> {
  if (await takeFromWindow(pool, window)) return undefined
  const state = await findWindowState(pool, window)
  return state === undefined ? 1 : waitMs(window, state)
}
