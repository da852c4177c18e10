import { assertNever, Failure, newId, notFound } from '../../base/index.ts'
import type { MethodPlan } from '../../definition/index.ts'
import type { TokenRules } from '../../formats/index.ts'
import {
  acquireTokenLease,
  isForeignKeyViolation,
  type TokenLeaseAttempt,
  type TokenLeaseRequest,
} from '../../storage/index.ts'
import { getResolvedAccount, type ResolveAccountDeps, type ResolvedAccount, tokenRulesOf } from '../ready-account.ts'
import { LEASE_MS, type RefreshTokenDeps, refreshToken } from './obtain-token.ts'
import { isFresh, isUsable } from './stored-token.ts'
import { parseTokenError, tokenFailure } from './token-failure.ts'

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
