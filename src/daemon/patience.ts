import type { BackoffPolicy } from '../base/index.ts'

/** How often a service that is away is asked again: often enough that a restart costs little of a lease. */
export const SERVICE_RETRY_POLICY: BackoffPolicy = { baseMs: 200, factor: 2, maxMs: 5_000, jitterFloor: 0.5 }

/** A call that is not a list or a wait is over by then, or is asked again. */
export const CALL_TIMEOUT_MS = 10_000
