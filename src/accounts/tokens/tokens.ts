import { assertNever, Failure, newId, notFound } from '../../base/index.ts'
import type { MethodPlan } from '../../definition/index.ts'
import type { TokenRules } from '../../formats/index.ts'
import { isForeignKeyViolation, type LeaseAttempt, type LeaseRequest, takeTokenLease } from '../../storage/index.ts'
import { type AccessDeps, findReadyAccount, type ReadyAccount, tokenRulesOf } from '../ready-account.ts'
import { LEASE_MS, type ObtainDeps, obtainToken } from './obtain-token.ts'
import { isFresh, isUsable } from './stored-token.ts'
import { failureOf, readRefusal } from './token-failure.ts'

/** Keeps the tokens of accounts, one request at a time per account, whatever number of processes need one. */
export interface Tokens {
  /**
   * The account with a token that will do for a while: as it is when it has one, or needs none.
   *
   * A token that can still be used is used when there is no newer one to be had just now.
   *
   * @throws Failure CREDENTIALS_INVALID when the grant is refused, TOKEN_REQUEST_FAILED, RESOURCE_NOT_FOUND
   */
  fresh(ready: ReadyAccount): Promise<ReadyAccount>
  /**
   * The account with a newer token than it has; `undefined` when none is to be had without the customer.
   *
   * @param isForced whether to ask although the last request failed only just now
   * @throws Failure like `fresh`
   */
  renewed(ready: ReadyAccount, isForced: boolean): Promise<ReadyAccount | undefined>
}

/** What keeping tokens needs. */
export type TokensDeps = ObtainDeps & AccessDeps

/** How long a process waits for another one that is asking. */
const WAIT_MS_MAX = 20_000
const POLL_MS = 150

/** @returns the one keeper of a process; two of them work, but share less */
export function createTokens(deps: TokensDeps): Tokens {
  /** Requests of this process, so that any number of its calls make one attempt at the lease. */
  const underway = new Map<string, Promise<ReadyAccount>>()

  function obtain(ready: ReadyAccount, isForced: boolean): Promise<ReadyAccount> {
    const key = `${ready.account.id} ${versionOf(ready)} ${isForced}`
    const known = underway.get(key)
    if (known !== undefined) return known
    const begun = obtainOrAwait(deps, ready, isForced).finally(() => underway.delete(key))
    underway.set(key, begun)
    return begun
  }

  return {
    async fresh(ready) {
      const now = deps.clock.now()
      const rules = tokenRulesOf(ready)
      if (rules === undefined || (ready.token !== undefined && isFresh(ready.token, now))) return ready
      if (!rules.canObtain(ready.token)) return ready
      try {
        return await obtain(ready, false)
      } catch (error) {
        if (isPassing(error) && ready.token !== undefined && isUsable(ready.token, now)) return ready
        throw error
      }
    },
    async renewed(ready, isForced) {
      return tokenRulesOf(ready)?.canObtain(ready.token) === true ? await obtain(ready, isForced) : undefined
    },
  }
}

/** Takes the lease and asks, or waits for whoever has it and reads what came of it. */
async function obtainOrAwait(deps: TokensDeps, first: ReadyAccount, isForced: boolean): Promise<ReadyAccount> {
  const giveUpAtMs = deps.clock.monotonicMs() + WAIT_MS_MAX
  let ready = first
  let version = versionOf(first)
  while (deps.clock.monotonicMs() < giveUpAtMs) {
    const attempt = await takeLease(deps, ready, { leaseId: newId(), leaseMs: LEASE_MS, version, isForced })
    switch (attempt.kind) {
      case 'taken': {
        const obtained = await obtainToken(deps, ready, rulesOf(ready), attempt.lease)
        if (obtained !== undefined) return obtained
        break
      }
      case 'outdated': {
        ready = await reread(deps, ready)
        if (!isWanting(ready, deps.clock.now())) return ready
        version = attempt.version
        break
      }
      case 'paused':
        throw failureOf(readRefusal(attempt.refusal), ready.account.id, attempt.retryAfterMs)
      case 'held':
        await deps.clock.sleep(POLL_MS)
        break
      default:
        assertNever(attempt)
    }
  }
  throw waitedTooLong(first)
}

async function takeLease(deps: TokensDeps, { account }: ReadyAccount, request: LeaseRequest): Promise<LeaseAttempt> {
  try {
    return await takeTokenLease(deps.database.direct, account, request)
  } catch (error) {
    if (!isForeignKeyViolation(error, 'account_token_account')) throw error
    throw notFound('integrated_account', account.id)
  }
}

async function reread(deps: TokensDeps, { account }: ReadyAccount): Promise<ReadyAccount> {
  return await findReadyAccount(deps, deps.database.direct, account.environmentId, account.id)
}

/** Whether an account that was read again has to have a token obtained after all: it was given new credentials, say. */
function isWanting(ready: ReadyAccount, now: Date): boolean {
  const { token } = ready
  return (token === undefined || !isFresh(token, now)) && tokenRulesOf(ready)?.canObtain(token) === true
}

function rulesOf(ready: ReadyAccount): TokenRules<MethodPlan> {
  const rules = tokenRulesOf(ready)
  if (rules === undefined) throw new Error('no token is obtained for an account that needs none')
  return rules
}

function versionOf({ token }: ReadyAccount): number {
  return token?.version ?? 0
}

function isPassing(error: unknown): boolean {
  return error instanceof Failure && error.reason === 'TOKEN_REQUEST_FAILED'
}

function waitedTooLong({ account }: ReadyAccount): Failure {
  return new Failure('TOKEN_REQUEST_FAILED', 'another process is still asking for a token: try again later', {
    resource: { type: 'integrated_account', id: account.id },
    retryAfterSeconds: 5,
  })
}
