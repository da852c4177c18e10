import type { BudgetRule, MethodPlan } from '../../engine/definitions/index.ts'
import type { AccountAccess, CallLimiter, CallPermit, RateLimitInfo } from '../../engine/proxy/index.ts'
import {
  type Clock,
  detachFromRequest,
  newId,
  type Random,
  wholeSeconds,
  windowsUntilAllowed,
} from '../../foundation/base/index.ts'
import type { Database } from '../../foundation/database/index.ts'
import { parseRetryAfter } from '../../foundation/egress/index.ts'
import {
  acquireConcurrencySlot,
  blockWindow,
  type ConcurrencySlot,
  findWindowState,
  type RateLimitWindow,
  type RateLimitWindowState,
  releaseConcurrencySlot,
  returnToWindow,
  takeFromWindow,
} from './sql.ts'

/** What a limiter takes. */
export interface CallLimiterDeps {
  readonly database: Pick<Database, 'pool'>
  readonly clock: Clock
  readonly random: Random
  /** Called when a block or the release of a slot could not be written; both expire. */
  readonly onWriteError: (error: unknown) => void
}

/** A call waits this long inside the limiter; a longer wait is left to the caller. */
const INLINE_WAIT_MAX_MS = 1_000
/** Longest pause between two attempts to acquire a slot; drawn at random. */
const SLOT_POLL_MS = 40
/** A slot whose holder died is free after this long; longer than a call takes. */
const SLOT_TTL_MS = 60_000
/** Narrowest first. */
const SCOPES = ['account', 'tenant', 'integration'] as const

/**
 * Rate limiter of calls, shared by all processes through the database: the definition's `budget` (sliding windows) and
 * `concurrency` (calls in flight). Methods without them cost nothing.
 */
export function createCallLimiter(deps: CallLimiterDeps): CallLimiter {
  return {
    acquire: (method, access, signal) => acquire(deps, method, access, signal),
    observe(method, access, answer) {
      if (method.budgets.length === 0) return
      const seconds = answer.retryAfterSeconds ?? secondsUntilReset(answer.rateLimit, deps.clock)
      if (seconds === undefined) return
      void detachFromRequest(() => blockNarrowestScope(deps, method, access, seconds * 1_000))
    },
  }
}

async function acquire(
  deps: CallLimiterDeps,
  method: MethodPlan,
  access: AccountAccess,
  signal: AbortSignal | undefined,
): Promise<CallPermit> {
  const slot = await awaitConcurrencySlot(deps, method, access, signal)
  if (slot === 'full') return { kind: 'limited', retryAfterSeconds: INLINE_WAIT_MAX_MS / 1_000 }
  const release = async () => {
    if (slot === undefined) return
    await detachFromRequest(() => releaseConcurrencySlot(deps.database.pool, slot)).catch(deps.onWriteError)
  }
  try {
    const limitedMs = await takeFromAllWindows(deps, windowsOf(method, access), signal)
    if (limitedMs === undefined) return { kind: 'granted', release }
    await release()
    return { kind: 'limited', retryAfterSeconds: wholeSeconds(limitedMs) }
  } catch (error) {
    await release()
    throw error
  }
}

/** A concurrency slot of the account; `undefined` where there is no limit. */
async function awaitConcurrencySlot(
  { database, clock, random }: CallLimiterDeps,
  { concurrencyMax }: MethodPlan,
  { id, environmentId }: AccountAccess,
  signal: AbortSignal | undefined,
): Promise<ConcurrencySlot | 'full' | undefined> {
  if (concurrencyMax === undefined || environmentId === undefined) return undefined
  const slot = { environmentId, accountId: id, holder: newId() }
  const untilMs = clock.monotonicMs() + INLINE_WAIT_MAX_MS
  while (!(await acquireConcurrencySlot(database.pool, slot, concurrencyMax, SLOT_TTL_MS))) {
    if (clock.monotonicMs() >= untilMs || signal?.aborted === true) return 'full'
    await clock.sleep(SLOT_POLL_MS * random(), signal)
  }
  return slot
}

/** Takes one request from every window, or from none. @returns the ms to wait; `undefined` when all allowed it */
async function takeFromAllWindows(
  deps: CallLimiterDeps,
  windows: readonly RateLimitWindow[],
  signal: AbortSignal | undefined,
): Promise<number | undefined> {
  const { pool } = deps.database
  for (const [at, window] of windows.entries()) {
    const limitedMs = await awaitWindow(deps, window, signal)
    if (limitedMs === undefined) continue
    for (const taken of windows.slice(0, at)) await returnToWindow(pool, taken)
    return limitedMs
  }
  return undefined
}

async function awaitWindow(
  { database: { pool }, clock }: CallLimiterDeps,
  window: RateLimitWindow,
  signal: AbortSignal | undefined,
): Promise<number | undefined> {
  const untilMs = clock.monotonicMs() + INLINE_WAIT_MAX_MS
  while (!(await takeFromWindow(pool, window))) {
    const state = await findWindowState(pool, window)
    const ms = state === undefined ? 1 : waitMs(window, state)
    if (clock.monotonicMs() + ms > untilMs || signal?.aborted === true) return ms
    await clock.sleep(ms, signal)
  }
  return undefined
}

/**
 * Blocks calls in all processes because the third party asked to wait. Only the narrowest scope that the call was counted in
 * is blocked: calls of others, who share the wider ones, continue.
 */
async function blockNarrowestScope(
  { database, onWriteError }: CallLimiterDeps,
  method: MethodPlan,
  access: AccountAccess,
  blockMs: number,
): Promise<void> {
  const narrowest = SCOPES.find((scope) => method.budgets.some((rule) => rule.scope === scope))
  const budgets = method.budgets.filter(({ scope }) => scope === narrowest)
  try {
    for (const window of windowsOf({ budgets }, access)) await blockWindow(database.pool, window, blockMs)
  } catch (error) {
    onWriteError(error)
  }
}

/** Seconds until the third party's limit resets, when the response says that nothing remains. */
function secondsUntilReset(rateLimit: RateLimitInfo | undefined, clock: Clock): number | undefined {
  const isExhausted = rateLimit?.remaining !== undefined && Number(rateLimit.remaining) <= 0
  return isExhausted ? parseRetryAfter(rateLimit.reset, clock.now()) : undefined
}

/** The windows a call is counted in; none for an account that is not stored. */
function windowsOf({ budgets }: Pick<MethodPlan, 'budgets'>, access: AccountAccess): RateLimitWindow[] {
  const { environmentId } = access
  if (environmentId === undefined) return []
  return budgets.map(({ key, limit, windowMs, scope }) => ({
    environmentId,
    limit,
    windowMs,
    subject: `${scope}:${subjectOf(scope, access)}:${key}`,
  }))
}

function subjectOf(scope: BudgetRule['scope'], { id, environmentIntegrationId, tenantId }: AccountAccess): string {
  switch (scope) {
    case 'account':
      return id
    case 'integration':
      return environmentIntegrationId ?? id
    case 'tenant':
      return `${environmentIntegrationId ?? ''}:${tenantId ?? id}`
  }
}

/** Milliseconds until the window takes another request if nothing takes one meanwhile; at least 1. */
export function waitMs(
  { limit, windowMs }: Pick<RateLimitWindow, 'limit' | 'windowMs'>,
  state: RateLimitWindowState,
): number {
  return Math.max(1, Math.ceil(Math.max(state.blockedMs, windowsUntilAllowed(limit, state) * windowMs)))
}
