import { assertNever, type BackoffPolicy, backoffMs, Failure, type JsonObject, newId, notFound } from '../base/index.ts'
import { type Database, isDatabaseUnavailable, isForeignKeyViolation, type Tx } from '../database/index.ts'
import type { MethodPlan } from '../definitions/index.ts'
import type { TokenError, TokenRules, TokenSet } from '../formats/index.ts'
import type { SecretStore } from '../secrets/index.ts'
import { contextKeysFromToken } from './context.ts'
import {
  getResolvedAccount,
  type ResolveAccountDeps,
  type ResolvedAccount,
  tokenRulesOf,
  withToken,
} from './load-account.ts'
import {
  parseTokenError,
  type RequestTokenDeps,
  requestToken,
  TOKEN_REQUESTS_TIMEOUT_MS,
  tokenErrorJson,
  tokenFailure,
  tokenRetryDelayMs,
} from './request-token.ts'
import {
  acquireTokenLease,
  completeTokenRefresh,
  failTokenRefresh,
  type TokenLease,
  type TokenLeaseAttempt,
  type TokenLeaseRequest,
} from './sql/account-token.ts'
import { updateIntegratedAccountRow } from './sql/integrated-account.ts'
import { changeAccountStatus } from './status.ts'
import { accountSecretRef, isFresh, isUsable, type StoredToken, tokenSecret, tokenTimes } from './stored-credentials.ts'

/** Keeps the tokens of accounts, one request at a time per account, whatever number of processes need one. */
export interface TokenProvider {
  /**
   * The account with a token that will do for a while: as it is when it has one, or needs none.
   *
   * A token that can still be used is used when there is no newer one to be had just now.
   *
   * @throws Failure CREDENTIALS_INVALID when the grant is refused, TOKEN_REQUEST_FAILED, RESOURCE_NOT_FOUND
   */
  ensureFresh(ready: ResolvedAccount): Promise<ResolvedAccount>
  /**
   * The account with a newer token than it has; `undefined` when none is to be had without the customer.
   *
   * @param isForced whether to ask although the last request failed only just now
   * @throws Failure like `fresh`
   */
  refresh(ready: ResolvedAccount, isForced: boolean): Promise<ResolvedAccount | undefined>
}

/** What keeping tokens needs. */
export type TokenProviderDeps = RefreshTokenDeps & ResolveAccountDeps

/** How long a process waits for another one that is asking. */
const LEASE_WAIT_MAX_MS = 20_000
const LEASE_POLL_MS = 150

/** @returns the one keeper of a process; two of them work, but share less */
export function createTokenProvider(deps: TokenProviderDeps): TokenProvider {
  /** Requests of this process, so that any number of its calls make one attempt at the lease. */
  const underway = new Map<string, Promise<ResolvedAccount>>()

  function obtain(ready: ResolvedAccount, isForced: boolean): Promise<ResolvedAccount> {
    const key = `${ready.account.id} ${versionOf(ready)} ${isForced}`
    const known = underway.get(key)
    if (known !== undefined) return known
    const begun = refreshOrAwait(deps, ready, isForced).finally(() => underway.delete(key))
    underway.set(key, begun)
    return begun
  }

  return {
    async ensureFresh(ready) {
      const now = deps.clock.now()
      const rules = tokenRulesOf(ready)
      if (rules === undefined || (ready.token !== undefined && isFresh(ready.token, now))) return ready
      if (!rules.canRequestToken(ready.token)) return ready
      try {
        return await obtain(ready, false)
      } catch (error) {
        if (isTransient(error) && ready.token !== undefined && isUsable(ready.token, now)) return ready
        throw error
      }
    },
    async refresh(ready, isForced) {
      return tokenRulesOf(ready)?.canRequestToken(ready.token) === true ? await obtain(ready, isForced) : undefined
    },
  }
}

/** Takes the lease and asks, or waits for whoever has it and reads what came of it. */
async function refreshOrAwait(
  deps: TokenProviderDeps,
  first: ResolvedAccount,
  isForced: boolean,
): Promise<ResolvedAccount> {
  const giveUpAtMs = deps.clock.monotonicMs() + LEASE_WAIT_MAX_MS
  let ready = first
  let version = versionOf(first)
  while (deps.clock.monotonicMs() < giveUpAtMs) {
    const attempt = await acquireLease(deps, ready, { leaseId: newId(), leaseMs: LEASE_MS, version, isForced })
    switch (attempt.kind) {
      case 'taken': {
        const obtained = await refreshToken(deps, ready, rulesOf(ready), attempt.lease)
        if (obtained !== undefined) return obtained
        break
      }
      case 'outdated': {
        ready = await reread(deps, ready)
        if (!needsToken(ready, deps.clock.now())) return ready
        version = attempt.version
        break
      }
      case 'paused':
        throw tokenFailure(parseTokenError(attempt.refusal), ready.account.id, attempt.retryAfterMs)
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
  deps: TokenProviderDeps,
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

async function reread(deps: TokenProviderDeps, { account }: ResolvedAccount): Promise<ResolvedAccount> {
  return await getResolvedAccount(deps, deps.database.pool, account.environmentId, account.id)
}

/** Whether an account that was read again has to have a token obtained after all: it was given new credentials, say. */
function needsToken(ready: ResolvedAccount, now: Date): boolean {
  const { token } = ready
  return (token === undefined || !isFresh(token, now)) && tokenRulesOf(ready)?.canRequestToken(token) === true
}

function rulesOf(ready: ResolvedAccount): TokenRules<MethodPlan> {
  const rules = tokenRulesOf(ready)
  if (rules === undefined) throw new Error('no token is obtained for an account that needs none')
  return rules
}

function versionOf({ token }: ResolvedAccount): number {
  return token?.version ?? 0
}

function isTransient(error: unknown): boolean {
  return error instanceof Failure && error.reason === 'TOKEN_REQUEST_FAILED'
}

function leaseWaitTimeout({ account }: ResolvedAccount): Failure {
  return new Failure('TOKEN_REQUEST_FAILED', 'another process is still asking for a token: try again later', {
    resource: { type: 'integrated_account', id: account.id },
    retryAfterSeconds: 5,
  })
}

/** What obtaining tokens needs. */
export interface RefreshTokenDeps extends RequestTokenDeps {
  readonly database: Pick<Database, 'pool' | 'transaction'>
  readonly secrets: Pick<SecretStore, 'put'>
  /** A number in [0, 1). */
  readonly random: () => number
}

/** A token that was paid for with a refresh token must not be lost to a hiccup of the database. */
const STORE_ATTEMPTS_MAX = 5
const STORE_RETRY: BackoffPolicy = { baseMs: 250, factor: 2, maxMs: 2_000, jitterFloor: 0.5 }

/** The lease outlives the requests and the attempts to store what they bring. */
export const LEASE_MS = TOKEN_REQUESTS_TIMEOUT_MS + 15_000

/**
 * Obtains the next token under a lease that the caller has taken. The token is durable before anybody uses it; nothing is
 * held in the database while the third party is asked.
 *
 * @returns the account with its new token; `undefined` when the lease was taken over meanwhile, so that nothing was stored
 * @throws Failure CREDENTIALS_INVALID when the grant is refused (an active account is `needs_reauth` from then on),
 * TOKEN_REQUEST_FAILED
 */
export async function refreshToken(
  deps: RefreshTokenDeps,
  ready: ResolvedAccount,
  rules: TokenRules<MethodPlan>,
  lease: TokenLease,
): Promise<ResolvedAccount | undefined> {
  const answer = await requestToken(deps, rules, ready)
  if (answer.kind !== 'granted') return await recordErrorAndThrow(deps, ready, lease, answer)
  return await storeWithRetry(deps, () =>
    deps.database.transaction((tx) => storeToken(deps, tx, ready, { rules, lease, token: answer.token })),
  )
}

async function storeToken(
  { secrets, clock, random }: RefreshTokenDeps,
  tx: Tx,
  ready: ResolvedAccount,
  granted: { readonly rules: TokenRules<MethodPlan>; readonly lease: TokenLease; readonly token: TokenSet },
): Promise<ResolvedAccount | undefined> {
  const { rules, lease, token } = granted
  const { account } = ready
  const obtainedAt = clock.now()
  const times = tokenTimes({ obtainedAt, expiresAt: token.expiresAt }, rules.canRequestToken(token), random)
  const version = await completeTokenRefresh(tx, lease, times)
  if (version === undefined) return undefined
  const stored: StoredToken = { ...token, version, obtainedAt }
  await secrets.put(tx, accountSecretRef(account), tokenSecret(stored))
  const filled = contextKeysFromToken(rules, token, account.context, ready.access.credentials)
  if (Object.keys(filled).length > 0) await fillContext(tx, ready, filled)
  return withToken({ ...ready, account: { ...account, context: { ...account.context, ...filled } } }, stored)
}

async function fillContext(tx: Tx, { account }: ResolvedAccount, contextKeys: JsonObject): Promise<void> {
  const patch = { tenantId: undefined, contextKeys, removedContextKeys: [], version: undefined }
  await updateIntegratedAccountRow(tx, account.environmentId, account.id, patch)
}

/** Keeps the refusal, for those who ask during the pause, and throws it. Of a lease that was taken over nothing is kept. */
async function recordErrorAndThrow(
  { database, random }: RefreshTokenDeps,
  { account }: ResolvedAccount,
  lease: TokenLease,
  refusal: TokenError,
): Promise<undefined> {
  const pauseMs = tokenRetryDelayMs(refusal, lease.failures + 1, random)
  const failure = tokenFailure(refusal, account.id, pauseMs)
  const isOurs = await database.transaction(async (tx) => {
    const isFinal = refusal.kind === 'grant_refused'
    if (!(await failTokenRefresh(tx, lease, { refusal: tokenErrorJson(refusal), pauseMs, isFinal }))) return false
    if (isFinal) await changeAccountStatus(tx, account, 'refresh_failed', failure.publicMessage)
    return true
  })
  if (isOurs) throw failure
  return undefined
}

async function storeWithRetry<Result>(
  { clock, random }: RefreshTokenDeps,
  work: () => Promise<Result>,
): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (attempt === STORE_ATTEMPTS_MAX || !isDatabaseUnavailable(error)) throw error
      await clock.sleep(backoffMs(STORE_RETRY, attempt, random))
    }
  }
}
