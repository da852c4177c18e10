import { Failure, isJsonObject, type Json, type JsonObject, parseJson } from '../base/index.ts'
import {
  advancePage,
  type ListingState,
  type Pagination,
  pageParams,
  parseListingState,
  type StopReason,
  startListing,
} from '../formats/index.ts'
import { type CallContext, paginationContext, templateScope } from './call-context.ts'
import type { CallDependencies } from './dependencies.ts'
import { type Extracted, extractRecords } from './extract.ts'
import type {
  ClassifiedResponse,
  ClassifiedSuccess,
  RateLimitedOutcome,
  RateLimitInfo,
  UpstreamErrorOutcome,
} from './outcome.ts'
import { maskLinkSecrets, restoreLinkSecrets } from './redaction.ts'
import { sendWithRetries } from './send.ts'

/** One page of a list, whatever pages it: also a list without paging, or a method that answers one record. */
export type ListPageOutcome = FetchedPage | RateLimitedOutcome | UpstreamErrorOutcome

export interface FetchedPage {
  readonly kind: 'page'
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Json
  readonly records: readonly Json[]
  /** For the next page; `null` at the end. */
  readonly state: ListingState | null
  readonly previous: ListingState | undefined
  /** Present at the end. */
  readonly stopReason: StopReason | undefined
  /** How many records the list has in all, as the upstream claims. */
  readonly total?: number | undefined
  readonly rateLimit: RateLimitInfo | undefined
}

const NO_RECORDS: Extracted = { records: [], received: undefined }

/** Where a caller's page of a list is: at its cursor, else at the beginning. @throws Failure PAGE_TOKEN_INVALID */
export async function initialState(
  deps: CallDependencies,
  job: CallContext,
  pagination: Pagination,
): Promise<ListingState> {
  const { cursor, limit } = job.request.page ?? {}
  if (cursor !== undefined) return decodeCursor(pagination, cursor)
  return startListing(pagination, limit, paginationContext(deps, templateScope(job)))
}

/** Fetches the page that a state describes and tells where it leads. @throws Failure of any stage; PAGINATION_LOOP */
export async function fetchPage(
  deps: CallDependencies,
  job: CallContext,
  pagination: Pagination,
  state: ListingState,
): Promise<ListPageOutcome> {
  const page = pageParams(pagination, restoreLinkSecrets(deps.redaction, state))
  return processPageResponse(deps, job, pagination, state, await sendWithRetries(deps, job, page))
}

/** What an answer to the request for a page comes to. @throws Failure EXPRESSION_FAILED, UPSTREAM_INVALID_RESPONSE, PAGINATION_LOOP */
export async function processPageResponse(
  deps: CallDependencies,
  job: CallContext,
  pagination: Pagination,
  state: ListingState,
  answer: ClassifiedResponse,
): Promise<ListPageOutcome> {
  if (answer.kind !== 'success') return emptyPageOfError(answer) ?? answer
  const { status, headers, body } = answer.response
  const { method } = job.target
  const { isPastEnd } = answer
  const extracted = isPastEnd ? NO_RECORDS : await extractRecords(deps.evaluator, method, answer.response)
  const digested = await advancePage(
    pagination,
    state,
    {
      status,
      headers,
      body,
      ...extracted,
      isPastEnd,
      idPath: method.idPath,
      url: answer.url,
      limit: state.limit ?? undefined,
    },
    paginationContext(deps, templateScope(job, pageParams(pagination, state).values)),
  )
  return {
    kind: 'page',
    status,
    headers,
    body,
    ...digested,
    state: digested.state && maskLinkSecrets(deps.redaction, digested.state),
    previous: digested.previous && maskLinkSecrets(deps.redaction, digested.previous),
    rateLimit: answer.rateLimit,
  }
}

/** The only page of a list that is not paged. */
export async function fetchUnpaged(deps: CallDependencies, job: CallContext): Promise<ListPageOutcome> {
  return processUnpagedResponse(deps, job, await sendWithRetries(deps, job))
}

/** What the answer to a list that is not paged comes to. @throws Failure EXPRESSION_FAILED, UPSTREAM_INVALID_RESPONSE */
export async function processUnpagedResponse(
  deps: CallDependencies,
  job: CallContext,
  answer: ClassifiedResponse,
): Promise<ListPageOutcome> {
  if (answer.kind !== 'success') return emptyPageOfError(answer) ?? answer
  const { records } = await extractRecords(deps.evaluator, job.target.method, answer.response)
  return onlyPage(answer, records, 'unpaginated')
}

function onlyPage(
  { response, rateLimit }: ClassifiedSuccess,
  records: readonly Json[],
  stopReason: StopReason,
): FetchedPage {
  return { kind: 'page', ...response, records, state: null, previous: undefined, stopReason, rateLimit }
}

/** Errors that the definition declares harmless end the list as an empty page. */
function emptyPageOfError(answer: Exclude<ClassifiedResponse, ClassifiedSuccess>): FetchedPage | undefined {
  if (answer.kind !== 'upstream_error' || (answer.action !== 'ignore' && answer.action !== 'stop')) return undefined
  const { status, headers, body, rateLimit } = answer
  const stopReason = answer.action === 'ignore' ? 'error_ignored' : 'error_stopped'
  return { kind: 'page', status, headers, body, records: [], state: null, previous: undefined, stopReason, rateLimit }
}

/** Longest cursor that is read; states of every format stay far below. */
const CURSOR_LENGTH_MAX = 16_384

/** A listing's state as one opaque text for callers. It holds no credential. */
export function encodeCursor(state: ListingState): string {
  return Buffer.from(JSON.stringify(state)).toString('base64url')
}

/** The state behind a caller's cursor. @throws Failure PAGE_TOKEN_INVALID */
export function decodeCursor(pagination: Pagination, cursor: string): ListingState {
  const state =
    cursor.length > CURSOR_LENGTH_MAX ? undefined : parseCursorJson(Buffer.from(cursor, 'base64url').toString())
  if (state === undefined) throw new Failure('PAGE_TOKEN_INVALID', 'the cursor is not one that this service gave out')
  return parseListingState(pagination, state)
}

function parseCursorJson(text: string): JsonObject | undefined {
  try {
    const value = parseJson(text)
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
