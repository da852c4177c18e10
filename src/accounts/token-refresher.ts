import { Failure, newId } from '../base/index.ts'
import { getResolvedAccount, type ResolvedAccount, tokenRulesOf } from './load-account.ts'
import { LEASE_MS, refreshToken, type TokenProviderDeps } from './refresh-token.ts'
import { tokenErrorJson } from './request-token.ts'
import { claimDueTokens, failTokenRefresh, type TokenLease } from './sql/account-token.ts'

/** What refreshing in the background needs. */
export interface TokenRefresherDeps extends TokenProviderDeps {
  /** Only accounts that live in one of these. Absent: all. */
  readonly regions?: readonly string[] | undefined
}

/** Tokens asked for at once; a round lasts as long as the slowest of them. */
const BATCH_SIZE = 16

/**
 * Refreshes tokens shortly before calls would have to, so that calls need not wait and accounts that nobody calls stay
 * authorised. Any number of workers share the work; each token is asked for by one of them.
 */
export class TokenRefresher {
  readonly #deps: TokenRefresherDeps

  constructor(deps: TokenRefresherDeps) {
    this.#deps = deps
  }

  /** One round; with nothing due it is one look into an index. @returns whether another one should follow at once */
  async runOnce(): Promise<boolean> {
    const { database, regions } = this.#deps
    const claim = { leaseId: newId(), leaseMs: LEASE_MS, regions, limit: BATCH_SIZE }
    const leases = await claimDueTokens(database.pool, claim)
    const settled = await Promise.allSettled(leases.map((lease) => this.#refresh(lease)))
    for (const each of settled) if (each.status === 'rejected' && !isExpected(each.reason)) throw each.reason
    return leases.length === BATCH_SIZE
  }

  async #refresh(lease: TokenLease): Promise<void> {
    const ready = await this.#find(lease)
    const rules = ready === undefined ? undefined : tokenRulesOf(ready)
    if (ready !== undefined && rules?.canRequestToken(ready.token) === true)
      await refreshToken(this.#deps, ready, rules, lease)
    else await failTokenRefresh(this.#deps.database.pool, lease, NO_LONGER_REFRESHABLE)
  }

  /** `undefined` while the definition of the account does not compile. */
  async #find({ environmentId, id }: TokenLease): Promise<ResolvedAccount | undefined> {
    try {
      return await getResolvedAccount(this.#deps, this.#deps.database.pool, environmentId, id)
    } catch (error) {
      if (error instanceof Failure && error.reason === 'DEFINITION_INVALID') return undefined
      throw error
    }
  }
}

/** For tokens whose definition no longer says how the next one is had. */
const NO_LONGER_REFRESHABLE = {
  refusal: tokenErrorJson({
    kind: 'client_refused',
    message: 'the definition no longer says how a token is had',
    retryAfterSeconds: undefined,
  }),
  pauseMs: 60_000,
  isFinal: false,
} as const

/** Refusals are noted with the token, and an account that is gone needs none. */
function isExpected(error: unknown): boolean {
  return error instanceof Failure && error.reason !== 'SECRET_UNREADABLE'
}
