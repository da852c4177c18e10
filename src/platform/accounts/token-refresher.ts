import { catchFailure, Failure } from '../../foundation/base/index.ts'
import { type DueResult, type DueWorkDeps, type Lease, runDue } from '../../foundation/queue/index.ts'
import { getResolvedAccount } from './load-account.ts'
import { LEASE_MS, type RefreshDependencies, refreshToken, versionOf } from './refresh-token.ts'
import { tokenErrorJson } from './request-token.ts'
import { tokenRulesOf } from './resolved-account.ts'
import { failedRefresh, TOKEN_REFRESHES, type TokenRefresh } from './sql/account-token.ts'

/** What refreshing in the background takes. */
type TokenRefresherOptions = RefreshDependencies & DueWorkDeps

/** Tokens refreshed at the same time; a round lasts as long as the slowest of them. */
const BATCH_SIZE = 16

/**
 * One round of refreshing tokens in the background shortly before calls would have to, so that calls seldom wait and the tokens
 * of idle accounts do not expire.
 *
 * @returns whether more tokens may be due
 */
export async function refreshDueTokens(deps: TokenRefresherOptions): Promise<boolean> {
  return await runDue(deps, {
    table: TOKEN_REFRESHES,
    leaseMs: LEASE_MS,
    batch: BATCH_SIZE,
    async work(lease, requestedMs) {
      const result = await catchFailure(() => refresh(deps, lease, requestedMs))
      if (!(result instanceof Failure)) return result
      if (result.reason === 'DEFINITION_INVALID') return NO_LONGER_REFRESHABLE
      // Token errors are stored beside the token, and a deleted account needs none.
      if (result.reason === 'SECRET_UNREADABLE') throw result
      return undefined
    },
  })
}

async function refresh(
  deps: TokenRefresherOptions,
  lease: Lease<TokenRefresh>,
  startedAtMs: number,
): Promise<DueResult | undefined> {
  const resolved = await getResolvedAccount(deps, deps.database.pool, lease.environmentId, lease.id)
  // Another token was stored after the claim, which ended the lease: a request would use up a refresh token whose successor
  // could not be stored.
  if (versionOf(resolved) !== lease.version) return undefined
  const rules = tokenRulesOf(resolved)
  if (rules?.canRequestToken(resolved.token) !== true) return NO_LONGER_REFRESHABLE
  await refreshToken(deps, resolved, rules, lease, startedAtMs)
  return undefined
}

/** For tokens whose definition no longer describes how to request the next one. */
const NO_LONGER_REFRESHABLE = failedRefresh({
  error: tokenErrorJson({
    kind: 'client_refused',
    message: 'the definition no longer describes how to request a token',
    retryAfterSeconds: undefined,
  }),
  retryDelayMs: 60_000,
  isFinal: false,
})
