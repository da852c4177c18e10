import type { Db } from '../database/index.ts'
import { waitMs } from './call-limiter.ts'
import { findWindowState, type RateLimitWindow, takeFromWindow } from './sql.ts'

/** Takes one request from a sliding window, shared by all processes. @returns the ms to wait; `undefined` when it was taken */
export async function takeRequest(tx: Db, window: RateLimitWindow): Promise<number | undefined> {
  if (await takeFromWindow(tx, window)) return undefined
  const state = await findWindowState(tx, window)
  return state === undefined ? 1 : waitMs(window, state)
}
