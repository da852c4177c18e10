import { AsyncLocalStorage } from 'node:async_hooks'
import type { Failure } from './errors.ts'

/** The place of a request among those that are worked on. */
export interface RequestSlot {
  /** Who shares with others: an environment, a team, a client address. */
  readonly owner: string
  /** Waits without the place. */
  releaseWhile<Result>(wait: () => Promise<Result>): Promise<Result>
}

/**
 * A row that is stored in the transaction of what a request stores. `foundation/database/` sends its INSERT with the first statement or
 * commit of the request that stores something.
 */
export interface CompanionRow {
  /** The INSERT, with `$n` for its values; it inserts nothing while its transaction has changed nothing. */
  readonly text: string
  /** Its values, when it is sent. */
  values(): readonly (string | null)[]
  /** Set once it has been committed. */
  isStored: boolean
}

/** A request for which work is done. */
export interface RequestScope {
  /** Its `x-request-id`; absent: of a command. */
  readonly requestId?: string | undefined
  /** What is stored with the first thing that the request stores; absent: nothing. */
  readonly companion?: CompanionRow | undefined
  /** Undefined until its work begins; see `FairSlots`. */
  slot: RequestSlot | undefined
  /** Why nothing more may begin for it, such as its deadline; undefined while it goes on. */
  readonly interruption: Failure | undefined
  /**
   * Postpones the error that an interruption sends until the outcome of a step is known: what the request says of itself is
   * then true. Bounded, because a database may not answer.
   *
   * @param stop called when the request is interrupted, to end the step early
   * @returns to be called once when the outcome is known. With `true` the step has stored something for good: a request that was
   *   interrupted meanwhile goes on to its answer, which would not be true otherwise.
   */
  holdAnswer(stop: () => void): (isStored?: boolean) => void
}

/**
 * The one ambient value of the program. Passed as an argument it would have to go through every function between a handler
 * and each statement, and a forgotten one would commit after its request was answered with an error.
 */
const scopes = new AsyncLocalStorage<WorkOrigin>()

/** What work was begun for. */
interface WorkOrigin {
  /** Undefined of work that is detached from it. */
  readonly request: RequestScope | undefined
  readonly requestId: string | undefined
}

/** Runs the work of a request: what it does to the database ends with the request. */
export function runInRequest<Result>(request: RequestScope, work: () => Result): Result {
  return scopes.run({ request, requestId: request.requestId }, work)
}

/** The request that this code works for; undefined in workers, and in work that outlives its request. */
export function currentRequest(): RequestScope | undefined {
  return scopes.getStore()?.request
}

/** The `x-request-id` of the request that began this work, also when it is detached from it; undefined in workers. */
export function currentRequestId(): string | undefined {
  return scopes.getStore()?.requestId
}

/**
 * Runs work that a request began and that does not end with it: it is shared with other requests, or a third party has done
 * its part already, such as issuing a token that replaces the stored one.
 */
export function detachFromRequest<Result>(work: () => Result): Result {
  return scopes.run({ request: undefined, requestId: currentRequestId() }, work)
}

/** Waits for a third party, a client or time: the slot of the request is free for others meanwhile. */
export function releaseSlotWhile<Result>(wait: () => Promise<Result>): Promise<Result> {
  const slot = currentRequest()?.slot
  return slot === undefined ? wait() : slot.releaseWhile(wait)
}

/** Owner of the work that no request asked for. */
const SERVICE = 'service'

/** For whom the current work runs: the owner of the request's slot, or the service itself. */
export function workOwner(): string {
  return currentRequest()?.slot?.owner ?? SERVICE
}
