import { Failure, newId } from '../base/index.ts'
import { getResolvedAccount } from './load-account.ts'
import { type HeldTokenLease, LEASE_MS, type RefreshDependencies, refreshToken, versionOf } from './refresh-token.ts'
import { tokenErrorJson } from './request-token.ts'
import { type ResolvedAccount, tokenRulesOf } from './resolved-account.ts'
import { claimDueTokens, failTokenRefresh, type TokenLease } from './sql/account-token.ts'

/** What refreshing in the background takes. */
type TokenRefresherOptions = RefreshDependencies & {
  /** Only accounts of these regions. Absent: all. */
  readonly regions?: readonly string[] | undefined
}

/** Tokens refreshed at the same time; a round lasts as long as the slowest of them. */
const BATCH_SIZE = 16

/**
 * Refreshes tokens in the background shortly before calls would have to, so that calls seldom wait and the tokens of idle
 * accounts do not expire. Any number of workers share the work; a lease gives each token to one of them.
 */
export class TokenRefresher {
  readonly #deps: TokenRefresherOptions

  constructor(deps: TokenRefresherOptions) {
    this.#deps = deps
  }

  /** One round; with nothing due it is one index scan. @returns whether more tokens may be due */
  async runOnce(): Promise<boolean> {
    const { database, clock, regions } = this.#deps
    const claim = { leaseId: newId(), leaseMs: LEASE_MS, regions, limit: BATCH_SIZE }
    const startedAtMs = clock.monotonicMs()
    const leases = await claimDueTokens(database.pool, claim)
    const settled = await Promise.allSettled(leases.map((lease) => this.#refresh({ lease, startedAtMs })))
    for (const each of settled) if (each.status === 'rejected' && !isExpected(each.reason)) throw each.reason
    return leases.length === BATCH_SIZE
  }

  async #refresh(held: HeldTokenLease): Promise<void> {
    const { lease } = held
    const resolved = await this.#resolve(lease)
    // Another token was stored after the claim, which ended the lease: a request would use up a refresh token whose
    // successor could not be stored.
    if (resolved !== undefined && versionOf(resolved) !== lease.version) return
    const rules = resolved === undefined ? undefined : tokenRulesOf(resolved)
    if (resolved !== undefined && rules?.canRequestToken(resolved.token) === true)
      await refreshToken(this.#deps, resolved, rules, held)
    else await failTokenRefresh(this.#deps.database.pool, lease, NO_LONGER_REFRESHABLE)
  }

  /** `undefined` while the definition of the account does not compile. */
  async #resolve({ environmentId, id }: TokenLease): Promise<ResolvedAccount | undefined> {
    try {
      return await getResolvedAccount(this.#deps, this.#deps.database.pool, environmentId, id)
    } catch (error) {
      if (error instanceof Failure && error.reason === 'DEFINITION_INVALID') return undefined
      throw error
    }
  }
}

/** For tokens whose definition no longer describes how to request the next one. */
const NO_LONGER_REFRESHABLE = {
  error: tokenErrorJson({
    kind: 'client_refused',
    message: 'the definition no longer describes how to request a token',
    retryAfterSeconds: undefined,
  }),
  retryDelayMs: 60_000,
  isFinal: false,
} as const

/** Token errors are stored beside the token, and a deleted account needs none. */
function isExpected(error: unknown): boolean {
  return error instanceof Failure && error.reason !== 'SECRET_UNREADABLE'
}
