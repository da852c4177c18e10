import { type Clock, newId, windowsUntilAllowed } from '../base/index.ts'
import type { Database } from '../database/index.ts'
import type { BudgetRule, MethodPlan } from '../definitions/index.ts'
import { parseRetryAfter } from '../egress/index.ts'
import type { AccountAccess, CallLimiter, CallPermit, RateLimitInfo } from '../proxy/index.ts'
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

/** What shared limits are built from. */
export interface CallLimiterDeps {
  readonly database: Pick<Database, 'pool'>
  readonly clock: Clock
  /** A number in [0, 1). */
  readonly random: () => number
  /** Told when something that may be lost could not be written. */
  readonly onWriteError: (error: unknown) => void
}

/** A call waits this long for room by itself; longer waits are the caller's to plan. */
const INLINE_WAIT_MAX_MS = 1_000
/** Between two looks at a full account; drawn at random below it. */
const SLOT_POLL_MS = 40
/** A place is free again after this long, whatever became of its holder: longer than a call takes. */
const SLOT_TTL_MS = 60_000
/** From the narrowest. */
const SCOPES = ['account', 'tenant', 'integration'] as const

/** Limits by the definition's `budget` and `concurrency`, counted in the database. Methods without them cost nothing. */
export function createCallLimiter(deps: CallLimiterDeps): CallLimiter {
  return {
    acquire: (method, access, signal) => acquire(deps, method, access, signal),
    observe(method, access, answer) {
      if (method.budgets.length === 0) return
      const seconds = answer.retryAfterSeconds ?? secondsUntilReset(answer.rateLimit, deps.clock)
      if (seconds !== undefined) void blockNarrowestScope(deps, method, access, seconds * 1_000)
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
    if (slot !== undefined) await releaseConcurrencySlot(deps.database.pool, slot).catch(deps.onWriteError)
  }
  try {
    const limitedMs = await takeFromAllWindows(deps, windowsOf(method, access), signal)
    if (limitedMs === undefined) return { kind: 'granted', release }
    await release()
    return { kind: 'limited', retryAfterSeconds: Math.ceil(limitedMs / 1_000) }
  } catch (error) {
    await release()
    throw error
  }
}

/** A place among the account's calls; none is needed without a limit. */
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

/** Takes one request from every window, or none at all. @returns how long to wait; `undefined` when all had room */
async function takeFromAllWindows(
  deps: CallLimiterDeps,
  windows: readonly RateLimitWindow[],
  signal: AbortSignal | undefined,
): Promise<number | undefined> {
  const { pool: direct } = deps.database
  for (const [at, window] of windows.entries()) {
    const limitedMs = await awaitWindow(deps, window, signal)
    if (limitedMs === undefined) continue
    for (const taken of windows.slice(0, at)) await returnToWindow(direct, taken)
    return limitedMs
  }
  return undefined
}

async function awaitWindow(
  { database: { pool: direct }, clock }: CallLimiterDeps,
  window: RateLimitWindow,
  signal: AbortSignal | undefined,
): Promise<number | undefined> {
  const untilMs = clock.monotonicMs() + INLINE_WAIT_MAX_MS
  while (!(await takeFromWindow(direct, window))) {
    const state = await findWindowState(direct, window)
    const ms = state === undefined ? 1 : waitMs(window, state)
    if (clock.monotonicMs() + ms > untilMs || signal?.aborted === true) return ms
    await clock.sleep(ms, signal)
  }
  return undefined
}

/**
 * The third party wants nothing more for a while: every process keeps still, and not only this one. It spoke about the
 * narrowest count that the call was part of; what others share goes on.
 */
async function blockNarrowestScope(
  { database, onWriteError: onLost }: CallLimiterDeps,
  method: MethodPlan,
  access: AccountAccess,
  forMs: number,
): Promise<void> {
  const narrowest = SCOPES.find((scope) => method.budgets.some((rule) => rule.scope === scope))
  const budgets = method.budgets.filter(({ scope }) => scope === narrowest)
  try {
    for (const window of windowsOf({ budgets }, access)) await blockWindow(database.pool, window, forMs)
  } catch (error) {
    onLost(error)
  }
}

/** Seconds until there is room again, when the answer says that there is none left. */
function secondsUntilReset(rateLimit: RateLimitInfo | undefined, clock: Clock): number | undefined {
  const isSpent = rateLimit?.remaining !== undefined && Number(rateLimit.remaining) <= 0
  return isSpent ? parseRetryAfter(rateLimit.reset, clock.now()) : undefined
}

/** The counts a call is part of. An account that is not kept in a database has none. */
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
