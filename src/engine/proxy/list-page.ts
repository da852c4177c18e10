import { headerTexts } from '../../foundation/egress/index.ts'
import { advancePage, type ListingState, pageParams, startListing } from '../formats/pagination/listing.ts'
import type { Pagination } from '../formats/pagination/paginator.ts'
import { type CallContext, paginationContext, templateScope } from './call-context.ts'
import { decodeCursor, listOf } from './cursor.ts'
import type { DecodedResponse } from './decode-response.ts'
import type { CallDependencies } from './dependencies.ts'
import { type Extracted, extractRecords } from './extract.ts'
import type { ClassifiedResponse, RateLimitedOutcome, RecordsPage, UpstreamErrorOutcome } from './outcome.ts'
import { maskLinkSecrets, restoreLinkSecrets } from './redaction.ts'
import { prepareRequest, sendWithRetries } from './send.ts'

/** The outcome of one request for a page: also of a list that is not paged, and of a method that answers one record. */
export type ListPageOutcome = FetchedPage | RateLimitedOutcome | UpstreamErrorOutcome

/** A page with the response it was read from. */
export interface FetchedPage {
  readonly kind: 'page'
  readonly page: RecordsPage<ListingState>
  readonly response: DecodedResponse
  /** State of the page before, where the API names one. */
  readonly previous: ListingState | undefined
}

/** Extraction of a response that only says that the list has ended. */
const NO_RECORDS: Extracted = { records: [], received: undefined }

/** The state of the page that a caller asks for: from its cursor, which must be of the same list, else of the first page. @throws Failure PAGE_TOKEN_INVALID */
export async function initialState(
  deps: CallDependencies,
  context: CallContext,
  pagination: Pagination,
): Promise<ListingState> {
  const { cursor, limit } = context.request.page ?? {}
  if (cursor !== undefined) return decodeCursor(deps.sealer, listOf(context), pagination, cursor)
  return startListing(pagination, limit, paginationContext(deps, templateScope(context)))
}

/** Fetches the page of a state. @throws Failure of any stage of the call; PAGINATION_LOOP */
export async function fetchPage(
  deps: CallDependencies,
  context: CallContext,
  pagination: Pagination,
  state: ListingState,
): Promise<ListPageOutcome> {
  const params = pageParams(pagination, restoreLinkSecrets(deps.redaction, state))
  const response = await sendWithRetries(deps, context, () => prepareRequest(deps, context, params))
  return processPageResponse(deps, context, pagination, state, response)
}

/** Extracts the records of a response and computes the state of the next page. @throws Failure EXPRESSION_FAILED, UPSTREAM_INVALID_RESPONSE, PAGINATION_LOOP */
export async function processPageResponse(
  deps: CallDependencies,
  context: CallContext,
  pagination: Pagination,
  state: ListingState,
  classified: ClassifiedResponse,
): Promise<ListPageOutcome> {
  if (classified.kind !== 'success') return emptyPageOfError(classified, state.pages + 1) ?? classified
  const { response, isPastEnd, rateLimit, url } = classified
  const { method } = context.target
  const extracted = isPastEnd ? NO_RECORDS : await extractRecords(deps.evaluator, method, response)
  const upstreamPage = {
    ...response,
    ...extracted,
    headers: headerTexts(response.headers),
    isPastEnd,
    idPath: method.idPath,
    url,
    limit: state.limit ?? undefined,
  }
  const scope = templateScope(context, pageParams(pagination, state).values)
  const { previous, ...advanced } = await advancePage(pagination, state, upstreamPage, paginationContext(deps, scope))
  const next = advanced.state && maskLinkSecrets(deps.redaction, advanced.state)
  return {
    kind: 'page',
    page: { kind: 'page', page: state.pages + 1, ...advanced, state: next, rateLimit, headers: response.headers },
    response,
    previous: previous && maskLinkSecrets(deps.redaction, previous),
  }
}

/** Fetches the only page of a list that is not paged. */
export async function fetchUnpaged(deps: CallDependencies, context: CallContext): Promise<ListPageOutcome> {
  return processUnpagedResponse(deps, context, await sendWithRetries(deps, context))
}

/** Extracts the records of a list that is not paged. @throws Failure EXPRESSION_FAILED, UPSTREAM_INVALID_RESPONSE */
export async function processUnpagedResponse(
  deps: CallDependencies,
  context: CallContext,
  classified: ClassifiedResponse,
): Promise<ListPageOutcome> {
  if (classified.kind !== 'success') return emptyPageOfError(classified, 1) ?? classified
  const { response, rateLimit } = classified
  const { records } = await extractRecords(deps.evaluator, context.target.method, response)
  return lastPage(response, { kind: 'page', page: 1, records, state: null, stopReason: 'unpaginated', rateLimit })
}

/** An error whose action is `ignore` or `stop` ends the list with an empty page. */
function emptyPageOfError(error: RateLimitedOutcome | UpstreamErrorOutcome, page: number): FetchedPage | undefined {
  if (error.kind !== 'upstream_error' || (error.action !== 'ignore' && error.action !== 'stop')) return undefined
  const { status, headers, body, action, rateLimit } = error
  const stopReason = action === 'ignore' ? 'error_ignored' : 'error_stopped'
  return lastPage({ status, headers, body }, { kind: 'page', page, records: [], state: null, stopReason, rateLimit })
}

function lastPage(response: DecodedResponse, page: RecordsPage<ListingState>): FetchedPage {
  return { kind: 'page', page: { ...page, headers: response.headers }, response, previous: undefined }
}
