import { type BackoffPolicy, backoffMs, type JsonObject } from '../../base/index.ts'
import type { MethodPlan } from '../../definition/index.ts'
import type { TokenError, TokenRules, TokenSet } from '../../formats/index.ts'
import {
  completeTokenRefresh,
  type Database,
  failTokenRefresh,
  isDatabaseUnavailable,
  type SecretStore,
  type TokenLease,
  type Tx,
  updateIntegratedAccountRow,
} from '../../storage/index.ts'
import { changeAccountStatus } from '../change-status.ts'
import { type ResolvedAccount, withToken } from '../ready-account.ts'
import { accountSecretRef } from '../secret-ref.ts'
import { type RequestTokenDeps, requestToken, TOKEN_REQUESTS_TIMEOUT_MS } from './ask-for-token.ts'
import { type StoredToken, tokenSecret, tokenTimes } from './stored-token.ts'
import { contextKeysFromToken } from './token-context.ts'
import { tokenErrorJson, tokenFailure, tokenRetryDelayMs } from './token-failure.ts'

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
