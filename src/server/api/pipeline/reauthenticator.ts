import { type Clock, detachFromRequest, Failure } from '../../../foundation/base/index.ts'
import type { AccountRef } from '../../../platform/accounts/index.ts'
import type { Authenticator } from '../../../platform/tenancy/index.ts'
import { accountKey, callerOf, lookUpAgainKey } from '../caller.ts'
import type { OpenRequests } from '../open-requests.ts'
import type { RequestContext } from '../request-context.ts'

/** With the cache TTL of authentication (500 ms), less than a second from a revocation to the end of the request. */
const INTERVAL_MS = 400

/** Finds accounts through which no request may go any more, and why. */
export type FindEndedAccounts = (accounts: readonly AccountRef[]) => Promise<ReadonlyMap<AccountRef, Failure>>

/**
 * Authenticates requests in progress again for as long as they last: a stream, a long poll or a streamed body ends when
 * its token is revoked or expires, the account that it goes through is deleted, or the account's installation disabled.
 * Requests of one token and environment are authenticated together, all accounts are read in one statement; requests that end
 * within an interval are never looked at, and no timer runs while there are none.
 */
export class Reauthenticator implements Disposable {
  readonly #authenticator: Pick<Authenticator, 'authenticate'>
  readonly #clock: Clock
  readonly #openExchanges: OpenRequests<{ readonly context: RequestContext }>
  readonly #findEndedAccounts: FindEndedAccounts
  readonly #disposed = new AbortController()
  #isRunning = false

  constructor(
    authenticator: Pick<Authenticator, 'authenticate'>,
    clock: Clock,
    openExchanges: OpenRequests<{ readonly context: RequestContext }>,
    findEndedAccounts: FindEndedAccounts,
  ) {
    this.#authenticator = authenticator
    this.#clock = clock
    this.#openExchanges = openExchanges
    this.#findEndedAccounts = findEndedAccounts
  }

  /** Starts the loop, which ends when no request is open. */
  start(): void {
    if (!this.#isRunning) void detachFromRequest(() => this.#run())
  }

  [Symbol.dispose](): void {
    this.#disposed.abort()
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    while (!this.#openExchanges.isEmpty && !this.#disposed.signal.aborted) {
      await this.#clock.sleep(INTERVAL_MS, this.#disposed.signal)
      const contexts = this.#longRequests()
      for (const group of byCaller(contexts)) await this.#reauthenticate(group)
      await Promise.all(contexts.map(lookUpAgain))
      await this.#endThroughAccounts(contexts.filter((context) => accountOf(context) !== undefined))
    }
    this.#isRunning = false
  }

  /** The requests that have lasted an interval. */
  #longRequests(): readonly RequestContext[] {
    const before = performance.now() - INTERVAL_MS
    return [...this.#openExchanges].flatMap(({ context }) =>
      isAuthenticated(context) && !context.isDone && context.startedMs <= before ? [context] : [],
    )
  }

  async #reauthenticate(contexts: readonly RequestContext[]): Promise<void> {
    const [first] = contexts
    if (first === undefined) return
    try {
      await this.#authenticator.authenticate(first.token, callerOf(first).environmentId)
    } catch (error) {
      // An unavailable database revokes nothing: the next interval tries again.
      if (error instanceof Failure) for (const context of contexts) context.interrupt(error)
    }
  }

  /** Ends requests whose account has ended. */
  async #endThroughAccounts(contexts: readonly RequestContext[]): Promise<void> {
    const accounts = contexts.flatMap((context) => accountOf(context) ?? [])
    if (accounts.length === 0) return
    try {
      const ended = await this.#findEndedAccounts(accounts)
      for (const context of contexts) {
        const account = accountOf(context)
        const failure = account === undefined ? undefined : ended.get(account)
        if (failure !== undefined) context.interrupt(failure)
      }
    } catch {
      // An unavailable database ends nothing: the next interval tries again.
    }
  }
}

function accountOf({ values }: RequestContext): AccountRef | undefined {
  return values.get(accountKey)
}

function isAuthenticated({ token, values }: RequestContext): boolean {
  return token !== undefined || values.get(lookUpAgainKey) !== undefined
}

/** Ends a request whose token of another kind than API tokens has ended. */
async function lookUpAgain(context: RequestContext): Promise<void> {
  try {
    await context.values.get(lookUpAgainKey)?.()
  } catch (error) {
    if (error instanceof Failure) context.interrupt(error)
  }
}

/** Requests with API tokens by token and environment. */
function byCaller(contexts: readonly RequestContext[]): Iterable<readonly RequestContext[]> {
  const ofApiTokens = contexts.filter(({ token }) => token !== undefined)
  return Map.groupBy(ofApiTokens, (context) => `${context.token?.hash} ${callerOf(context).environmentId}`).values()
}
