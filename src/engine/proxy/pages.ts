import type { JsonObject } from '../../foundation/json/index.ts'
import type { Plan } from '../definitions/plan.ts'
import { type ListingState, parseListingState, startListing } from '../formats/pagination/listing.ts'
import { type CallContext, createCallContext, paginationContext, templateScope } from './call-context.ts'
import type { CallDependencies } from './dependencies.ts'
import { fetchPage, fetchUnpaged } from './list-page.ts'
import type { RateLimitedOutcome, RecordsPage, UpstreamErrorOutcome } from './outcome.ts'
import type { AccountAccess, ProxyRequest } from './request.ts'

/** One step through a list: a page, a rate limit, or the error response that ends it. */
export type PageStep = RecordsPage | PageDelayed | (UpstreamErrorOutcome & UnreadPage)

/** Rate limit: the next step requests the same page again. */
export type PageDelayed = RateLimitedOutcome & UnreadPage

interface UnreadPage {
  /** Page number from 1, continued across resumes. */
  readonly page: number
  /** Resumes at this page. `null` only for a list that is not paged, which starts over. */
  readonly state: JsonObject | null
}

/**
 * Reads a list page by page. A method that is not a list is a list of its one result.
 *
 * Each page is requested when the consumer takes the next step, so a slow consumer is backpressure for the upstream. A rate
 * limit is a step: the consumer waits (or stores the state and resumes later) and takes the next step.
 *
 * @param state of an earlier step; absent or `null`: from the start
 * @throws Failure as `call` does; PAGE_TOKEN_INVALID when the definition has changed its pagination since the state was stored
 */
export async function* pages(
  deps: CallDependencies,
  plan: Plan,
  account: AccountAccess,
  request: ProxyRequest,
  state: JsonObject | null = null,
): AsyncGenerator<PageStep, void, void> {
  const context = createCallContext(plan, account, request)
  deps.requestLine.planned(context.target)
  const { pagination } = context.target.method
  if (pagination === undefined) return yield* unpagedList(deps, context)
  let next: ListingState | null =
    state === null
      ? await startListing(pagination, request.page?.limit, paginationContext(deps, templateScope(context)))
      : parseListingState(pagination, state)
  while (next !== null) {
    const current: ListingState = next
    const outcome = await fetchPage(deps, context, pagination, current)
    if (outcome.kind === 'page') {
      yield outcome.page
      next = outcome.page.state
    } else {
      yield { ...outcome, page: current.pages + 1, state: current }
      if (outcome.kind === 'upstream_error') return
    }
  }
}

async function* unpagedList(deps: CallDependencies, context: CallContext): AsyncGenerator<PageStep, void, void> {
  for (;;) {
    const outcome = await fetchUnpaged(deps, context)
    yield outcome.kind === 'page' ? outcome.page : { ...outcome, page: 1, state: null }
    if (outcome.kind !== 'rate_limited') return
  }
}
