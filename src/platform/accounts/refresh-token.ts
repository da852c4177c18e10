import type { MethodPlan } from '../../engine/definitions/index.ts'
import type { TokenError, TokenRules, TokenSet } from '../../engine/formats/index.ts'
import {
  assertNever,
  type BackoffPolicy,
  backoffMs,
  detachFromRequest,
  Failure,
  newId,
  notFound,
  releaseSlotWhile,
} from '../../foundation/base/index.ts'
import { isDatabaseUnavailable, isForeignKeyViolation, type Tx } from '../../foundation/database/index.ts'
import { type Lease, settleDue } from '../../foundation/queue/index.ts'
import { appendEventOf } from './account-events.ts'
import { revokeAuthorization } from './authorization.ts'
import { contextKeysFromToken } from './context.ts'
import { withoutViolations } from './context-rules.ts'
import type { AccountDependencies, TokenProvider } from './dependencies.ts'
import { getResolvedAccount } from './load-account.ts'
import { parseTokenError, requestToken, tokenErrorJson, tokenFailure, tokenRetryDelayMs } from './request-token.ts'
import { connectPlanOf, type ResolvedAccount, tokenRulesOf, withToken } from './resolved-account.ts'
import {
  acquireTokenLease,
  areOthersGranted,
  failedRefresh,
  grantedToken,
  TOKEN_REFRESHES,
  type TokenLeaseAttempt,
  type TokenLeaseRequest,
  type TokenRefresh,
} from './sql/account-token.ts'
import { findIntegratedAccount } from './sql/integrated-account.ts'
import { changeAccountStatus } from './status.ts'
import { updateAccount, withContextKeys } from './stored-context.ts'
import { accountSecretRef, isFresh, isUsable, type StoredToken, tokenSecret, tokenTimes } from './stored-credentials.ts'
import { TOKEN_REQUESTS_TIMEOUT_MS } from './token-context.ts'
import { HOST_WAIT_MAX_MS } from './token-http.ts'

/** What refreshing a token takes. */
export type RefreshDependencies = Pick<
  AccountDependencies,
  | 'database'
  | 'secrets'
  | 'definitions'
  | 'contextValues'
  | 'http'
  | 'evaluator'
  | 'proxyWithoutRefresh'
  | 'clock'
  | 'random'
  | 'logger'
>

/** How long a process waits while another one holds the lease. */
const LEASE_WAIT_MAX_MS = 20_000
const LEASE_POLL_MS = 150

/** One per process: its concurrent refreshes of an account share one attempt at the lease. */
export function createTokenProvider(deps: RefreshDependencies): TokenProvider {
  const inFlight = new Map<string, Promise<ResolvedAccount>>()

  function refreshOnce(resolved: ResolvedAccount, isForced: boolean): Promise<ResolvedAccount> {
    const key = `${resolved.account.id} ${versionOf(resolved)} ${isForced}`
    const shared = inFlight.get(key)
    if (shared !== undefined) return shared
    // The third party may end the old token before the new one arrives, and other requests wait for it too.
    const started = detachFromRequest(() => refreshOrAwait(deps, resolved, isForced)).finally(() =>
      inFlight.delete(key),
    )
    inFlight.set(key, started)
    return started
  }

  return {
    async ensureFresh(resolved) {
      const now = deps.clock.now()
      if (!needsToken(resolved, now)) return resolved
      try {
        return await releaseSlotWhile(() => refreshOnce(resolved, false))
      } catch (error) {
        const { token } = resolved
        if (isTokenRequestFailure(error) && token !== undefined && isUsable(token, now)) return resolved
        throw error
      }
    },
    async refresh(resolved, isForced) {
      const canRefresh = tokenRulesOf(resolved)?.canRequestToken(resolved.token) === true
      return canRefresh ? await releaseSlotWhile(() => refreshOnce(resolved, isForced)) : undefined
    },
  }
}

/** Refreshes under the lease, or waits for its holder and reads the token that it stored. */
async function refreshOrAwait(
  deps: RefreshDependencies,
  first: ResolvedAccount,
  isForced: boolean,
): Promise<ResolvedAccount> {
  const deadlineMs = deps.clock.monotonicMs() + LEASE_WAIT_MAX_MS
  let resolved = first
  let version = versionOf(first)
  while (deps.clock.monotonicMs() < deadlineMs) {
    const startedAtMs = deps.clock.monotonicMs()
    const attempt = await acquireLease(deps, resolved, { leaseId: newId(), leaseMs: LEASE_MS, version, isForced })
    switch (attempt.kind) {
      case 'taken': {
        const refreshed = await refreshToken(deps, resolved, rulesOf(resolved), attempt.lease, startedAtMs)
        if (refreshed !== undefined) return refreshed
        break
      }
      case 'outdated': {
        resolved = await reread(deps, resolved)
        if (!needsToken(resolved, deps.clock.now())) return resolved
        version = attempt.version
        break
      }
      case 'backing_off':
        throw tokenFailure(parseTokenError(attempt.error), resolved.account.id, attempt.retryAfterMs)
      case 'held':
        await deps.clock.sleep(LEASE_POLL_MS)
        break
      default:
        assertNever(attempt)
    }
  }
  throw leaseWaitTimeout(first)
}

async function acquireLease(
  deps: RefreshDependencies,
  { account }: ResolvedAccount,
  request: TokenLeaseRequest,
): Promise<TokenLeaseAttempt> {
  try {
    return await acquireTokenLease(deps.database.pool, account, request)
  } catch (error) {
    if (!isForeignKeyViolation(error, 'account_token_account')) throw error
    throw notFound('integrated_account', account.id)
  }
}

async function reread(deps: RefreshDependencies, { account }: ResolvedAccount): Promise<ResolvedAccount> {
  return await getResolvedAccount(deps, deps.database.pool, account.environmentId, account.id)
}

/** Whether the account has no fresh token, and one can be requested without the customer. */
function needsToken(resolved: ResolvedAccount, now: Date): boolean {
  const { token } = resolved
  return (token === undefined || !isFresh(token, now)) && tokenRulesOf(resolved)?.canRequestToken(token) === true
}

function rulesOf(resolved: ResolvedAccount): TokenRules<MethodPlan> {
  const rules = tokenRulesOf(resolved)
  if (rules === undefined) throw new Error('no token is requested for an account that needs none')
  return rules
}

/** The version of the account's token as `account_token` counts it; 0: there is none. */
export function versionOf({ token }: ResolvedAccount): number {
  return token?.version ?? 0
}

function isTokenRequestFailure(error: unknown): boolean {
  return error instanceof Failure && error.reason === 'TOKEN_REQUEST_FAILED'
}

function leaseWaitTimeout({ account }: ResolvedAccount): Failure {
  return new Failure('TOKEN_REQUEST_FAILED', 'another process is still asking for a token: try again later', {
    resource: { type: 'integrated_account', id: account.id },
    retryAfterSeconds: 5,
  })
}

/** A rotated refresh token cannot be used again: the write of the new token is retried while the database is unavailable. */
const STORE_ATTEMPTS_MAX = 5
const STORE_BACKOFF: BackoffPolicy = { baseMs: 250, factor: 2, maxMs: 2_000, jitterFloor: 0.5 }

/** Longer than the requests, their wait for the third party's limits, and the attempts to store their result. */
export const LEASE_MS = TOKEN_REQUESTS_TIMEOUT_MS + HOST_WAIT_MAX_MS + 15_000

/**
 * Requests the next token under a lease that the caller holds, and stores it before it is used; no transaction is open while
 * the third party is asked.
 *
 * @param startedAtMs `Clock.monotonicMs` before the lease was taken: a process that is paused sends nothing once its time is over
 * @returns the account with its new token; `undefined` when the lease was lost meanwhile, so that nothing was stored
 * @throws Failure CREDENTIALS_INVALID when the grant is rejected (an active account is `needs_reauth` from then on),
 * TOKEN_REQUEST_FAILED
 */
export async function refreshToken(
  deps: RefreshDependencies,
  resolved: ResolvedAccount,
  rules: TokenRules<MethodPlan>,
  lease: Lease<TokenRefresh>,
  startedAtMs: number,
): Promise<ResolvedAccount | undefined> {
  const result = await requestToken(deps, rules, resolved, startedAtMs).catch(async (error: unknown) => {
    await giveBack(deps, lease)
    throw error
  })
  if (result.kind !== 'granted') return await recordErrorAndThrow(deps, resolved, lease, result)
  const stored = await storeWithRetry(deps, () =>
    deps.database.transaction((tx) => storeToken(deps, tx, resolved, { rules, lease, token: result.token })),
  )
  if (stored === undefined) await revokeIfDeleted(deps, resolved, result.token)
  return stored
}

/** Ends a lease whose holder failed by an error of its own: others need not wait until it expires. */
async function giveBack({ database, random }: RefreshDependencies, lease: Lease<TokenRefresh>): Promise<void> {
  const error = { kind: 'transient', message: 'the request failed unexpectedly', retryAfterSeconds: undefined } as const
  const retryDelayMs = tokenRetryDelayMs(error, lease.failures + 1, random)
  const failed = failedRefresh({ error: tokenErrorJson(error), retryDelayMs, isFinal: false })
  await settleDue(database.pool, TOKEN_REFRESHES, lease, failed)
}

/**
 * The account was deleted while its token was requested, and what revokes its grant knows the token before that one alone. One
 * attempt: there is nowhere to keep the token.
 */
async function revokeIfDeleted(deps: RefreshDependencies, resolved: ResolvedAccount, token: TokenSet): Promise<void> {
  const { account } = resolved
  if ((await findIntegratedAccount(deps.database.pool, account.environmentId, account.id)) !== undefined) return
  const unstored = { ...token, version: versionOf(resolved), obtainedAt: deps.clock.now() }
  await revokeAuthorization(deps, withToken(resolved, unstored))
}

async function storeToken(
  deps: RefreshDependencies,
  tx: Tx,
  resolved: ResolvedAccount,
  granted: { readonly rules: TokenRules<MethodPlan>; readonly lease: Lease<TokenRefresh>; readonly token: TokenSet },
): Promise<ResolvedAccount | undefined> {
  const { secrets, clock, random } = deps
  const { rules, lease, token } = granted
  const { account } = resolved
  const obtainedAt = clock.now()
  const policy = { canRefresh: rules.canRequestToken(token), lifetimes: connectPlanOf(resolved)?.lifetimes }
  const times = tokenTimes({ obtainedAt, expiresAt: token.expiresAt }, policy, random)
  if (!(await settleDue(tx, TOKEN_REFRESHES, lease, grantedToken(times)))) return undefined
  const stored: StoredToken = { ...token, version: lease.version + 1, obtainedAt }
  await secrets.put(tx, accountSecretRef(account), tokenSecret(stored))
  if (lease.failures > 0) await changeAccountStatus(tx, account, 'token_granted', '', deps.logger)
  const contextKeys = withoutViolations({
    plan: resolved.plan,
    connect: connectPlanOf(resolved),
    context: contextKeysFromToken(rules, token, account.context, resolved.access.credentials),
    before: account.context,
    writer: 'definition',
  })
  if (Object.keys(contextKeys).length > 0) {
    const patch = { context: { keys: contextKeys, removed: [] } }
    const updated = await updateAccount(deps, tx, account, patch)
    if (updated !== undefined) await appendEventOf(tx, updated, 'updated')
  }
  return withToken(
    { ...resolved, account: { ...account, context: withContextKeys(account.context, contextKeys) } },
    stored,
  )
}

/** Failures in a row, about an hour of the back-off, until an error of unclear cause counts as a refused grant. */
const UNCLEAR_FAILURES_MAX = 16
/** Failures in a row until other accounts are looked at: what is changed at the third party reaches all at different times. */
const SINGLE_FAILURES_MAX = 3

/**
 * Stores the error for callers during the back-off, and throws it. Under a lost lease nothing is stored or thrown: the token
 * that was rejected is no longer the account's.
 */
async function recordErrorAndThrow(
  { database, random, logger }: RefreshDependencies,
  { account, token, integrationName }: ResolvedAccount,
  lease: Lease<TokenRefresh>,
  said: TokenError,
): Promise<undefined> {
  const failures = lease.failures + 1
  const others = canBeAccounts(said, failures) && (await areOthersGranted(database.pool, account))
  const given = withHistory(said, { failures, areOthersGranted: others })
  const lostSince = given.kind === 'grant_refused' && token?.refreshToken !== undefined ? lease.interruptedAt : null
  const error = lostSince === null ? given : { ...given, message: describeLoss(given.message, lostSince) }
  const retryDelayMs = tokenRetryDelayMs(error, failures, random)
  const failure = tokenFailure(error, account.id, retryDelayMs)
  const isLeaseHeld = await database.transaction(async (tx) => {
    const isFinal = error.kind === 'grant_refused'
    const failed = failedRefresh({ error: tokenErrorJson(error), retryDelayMs, isFinal })
    if (!(await settleDue(tx, TOKEN_REFRESHES, lease, failed))) return false
    const cause = lostSince === null ? 'refresh_failed' : 'token_lost'
    if (isFinal) await changeAccountStatus(tx, account, cause, failure.publicMessage, logger)
    return true
  })
  if (!isLeaseHeld) return undefined
  const { environmentId: environment_id, id: integrated_account_id } = account
  const fields = { environment_id, integrated_account_id, integration: integrationName, kind: error.kind }
  logger?.warn({ ...fields, failures, retry_in_ms: retryDelayMs }, 'a token could not be refreshed')
  throw failure
}

/** Whether an error that is not the account's by itself may turn out to be. */
function canBeAccounts({ kind }: TokenError, failures: number): boolean {
  return failures >= SINGLE_FAILURES_MAX && (kind === 'unclear' || kind === 'client_refused')
}

/**
 * An error of unclear cause that has lasted is the account's: what else could end it is a new consent. So is one that other accounts of
 * the installation, which have the same client and settings, do not get.
 */
function withHistory(
  error: TokenError,
  { failures, areOthersGranted }: { readonly failures: number; readonly areOthersGranted: boolean },
): TokenError {
  const hasLasted = error.kind === 'unclear' && failures >= UNCLEAR_FAILURES_MAX
  if (!hasLasted && !areOthersGranted) return error
  const others = areOthersGranted ? ', while other accounts of the installation got tokens' : ''
  return { ...error, kind: 'grant_refused', message: `${error.message}; ${failures} requests in a row failed${others}` }
}

function describeLoss(message: string, since: Date): string {
  const what = `the request for a token of ${since.toISOString()} was interrupted before its response was stored`
  return `${message}; ${what}, so the refresh token that replaced the rejected one is probably lost`
}

async function storeWithRetry<Result>(
  { clock, random }: RefreshDependencies,
  store: () => Promise<Result>,
): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await store()
    } catch (error) {
      if (attempt === STORE_ATTEMPTS_MAX || !isDatabaseUnavailable(error)) throw error
      await clock.sleep(backoffMs(STORE_BACKOFF, attempt, random))
    }
  }
}
