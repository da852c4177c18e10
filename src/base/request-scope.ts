import { AsyncLocalStorage } from 'node:async_hooks'
import type { Failure } from './errors.ts'

/** A request for which work is done. */
export interface RequestScope {
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
const scopes = new AsyncLocalStorage<RequestScope | undefined>()

/** Runs the work of a request: what it does to the database ends with the request. */
export function runInRequest<Result>(request: RequestScope, work: () => Result): Result {
  return scopes.run(request, work)
}

/** The request that this code works for; undefined in workers, and in work that outlives its request. */
export function currentRequest(): RequestScope | undefined {
  return scopes.getStore()
}

/**
 * Runs work that a request began and that does not end with it: it is shared with other requests, or a third party has done
 * its part already, such as issuing a token that replaces the stored one.
 */
export function outliveRequest<Result>(work: () => Result): Result {
  return scopes.run(undefined, work)
}
