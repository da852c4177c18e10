import type { Json, JsonObject } from '../base/index.ts'
import type { Plan } from '../definitions/index.ts'
import { type ListingState, parseListingState, type StopReason, startListing } from '../formats/index.ts'
import { type CallContext, createCallContext, paginationContext, templateScope } from './call-context.ts'
import type { CallDependencies } from './dependencies.ts'
import { fetchPage, fetchUnpaged, type ListPageOutcome } from './list-page.ts'
import type { RateLimitedOutcome, RateLimitInfo, UpstreamErrorOutcome } from './outcome.ts'
import type { AccountAccess, ProxyRequest } from './request.ts'

/** One step through a list. */
export type PageStep = PageReached | PageDelayed | PageFailed

/** Records, and where to go on after them. Commit both together. */
export interface PageReached {
  readonly kind: 'page'
  /** From 1, also across resumes. */
  readonly page: number
  readonly records: readonly Json[]
  /** Plain JSON; hand it to `pages` to go on after this page. `null` at the end. */
  readonly state: JsonObject | null
  /** Present at the end. */
  readonly stopReason: StopReason | undefined
  /** How many records the list has in all, as the upstream claims; it may change from page to page. */
  readonly total?: number | undefined
  readonly rateLimit: RateLimitInfo | undefined
}

/** The upstream asks to wait. Taking the next step asks for the same page again. */
export interface PageDelayed extends RateLimitedOutcome {
  readonly page: number
  /** Resumes at the page that was not served. `null` only for a list that is not paged, which starts over. */
  readonly state: JsonObject | null
}

/** The upstream refused or failed; the last step. */
export interface PageFailed extends UpstreamErrorOutcome {
  readonly page: number
  /** As for `PageDelayed`. */
  readonly state: JsonObject | null
}

/**
 * Walks through a list page by page. A method that is not a list is a list of its one result.
 *
 * Nothing is fetched before a step is taken, so that a slow consumer holds back the upstream. Rate limits are steps: the
 * consumer waits (or stores the state and goes on later) and takes the next step.
 *
 * @param state of an earlier step; absent or `null`: from the start
 * @throws Failure as `call` does; PAGE_TOKEN_INVALID when the definition below the state has changed its pagination
 */
export async function* pages(
  deps: CallDependencies,
  plan: Plan,
  account: AccountAccess,
  request: ProxyRequest,
  state?: JsonObject | null,
): AsyncGenerator<PageStep, void, void> {
  const job = createCallContext(plan, account, request)
  const { pagination } = job.target.method
  if (pagination === undefined) return yield* unpagedList(deps, job)
  const limit = request.page?.limit
  let at: ListingState | null =
    state === undefined || state === null
      ? await startListing(pagination, limit, paginationContext(deps, templateScope(job)))
      : parseListingState(pagination, state)
  while (at !== null) {
    const from: ListingState = at
    const step = stepOf(await fetchPage(deps, job, pagination, from), from.pages + 1, listingStateJson(from))
    yield step.step
    if (step.step.kind === 'upstream_error') return
    at = step.next === undefined ? from : step.next
  }
}

async function* unpagedList(deps: CallDependencies, job: CallContext): AsyncGenerator<PageStep, void, void> {
  for (;;) {
    const { step } = stepOf(await fetchUnpaged(deps, job), 1, null)
    yield step
    if (step.kind !== 'rate_limited') return
  }
}

/** The step for a fetched page. `next` is absent when the same page has to be fetched again. */
function stepOf(
  listed: ListPageOutcome,
  page: number,
  resume: JsonObject | null,
): { readonly step: PageStep; readonly next?: ListingState | null } {
  if (listed.kind !== 'page') return { step: { ...listed, page, state: resume } }
  const { records, state, stopReason, total, rateLimit } = listed
  return {
    step: {
      kind: 'page',
      page,
      records,
      state: state === null ? null : listingStateJson(state),
      stopReason,
      total,
      rateLimit,
    },
    next: state,
  }
}

/** The state as the plain JSON that it is, typed for storage. */
function listingStateJson({ loop, ...state }: ListingState): JsonObject {
  return { ...state, loop: { ...loop } }
}
