import { Failure } from '../../../foundation/base/index.ts'
import {
  canonicalJson,
  type DotPath,
  getAtPath,
  isJsonNumber,
  isJsonObject,
  type Json,
  type JsonObject,
  toDouble,
} from '../../../foundation/json/index.ts'
import type { TemplateScope } from '../../expressions/placeholder.ts'
import { renderValue } from '../../expressions/template.ts'
import { isTruthy } from '../format.ts'
import {
  INITIAL_LOOP_STATE,
  type LoopDetectorState,
  type Repetition,
  recordPage,
  recordPosition,
} from './loop-detector.ts'
import type { PaginationRules } from './paginator.ts'
import {
  integerAt,
  invalidPosition,
  type ListingContext,
  type ListingPage,
  type ListingStep,
  type PageParam,
  type PageParams,
  type Pagination,
  type Paginator,
  pageRoots,
  type StopReason,
  textAt,
  type UpstreamPage,
} from './paginator.ts'

/** State of a listing: plain JSON, so that any process can continue after any page. Part of checkpoints and cursors. */
export type ListingState = {
  readonly format: string
  readonly position: JsonObject
  /** The requested page size, the same for the whole listing. `null`: none is sent. */
  readonly limit: number | null
  readonly pages: number
  /** Records delivered. */
  readonly records: number
  /** Entries received; more than the records where `response_path` filters. */
  readonly received: number
  /** Consecutive pages without entries. */
  readonly empties: number
  readonly loop: LoopDetectorState
}

/** Result of a page. */
export interface PageResult {
  readonly records: readonly Json[]
  /** State for the next page; `null` at the end. */
  readonly state: ListingState | null
  /** State for the previous page, where the API names one. */
  readonly previous: ListingState | undefined
  /** Present at the end. */
  readonly stopReason: StopReason | undefined
  /** Total number of records, as the API reports it. */
  readonly total: number | undefined
}

const AT_START = { pages: 0, records: 0, received: 0, empties: 0, loop: INITIAL_LOOP_STATE } as const

/** Default path of a record's identifier. */
const ID_PATH: DotPath = ['id']

/** Most consecutive empty pages; more mean that the listing does not end. */
const EMPTY_PAGES_MAX = 1_000

/**
 * The state before the first page.
 *
 * @param limit page size of the caller; absent: that of its query under the API's own name (`limit_key`), else of the definition
 */
export async function startListing(
  pagination: Pagination,
  limit: number | undefined,
  context: ListingContext,
): Promise<ListingState> {
  const { rules, paginator, format } = pagination
  const wish = limit ?? queriedLimit(rules, context.scope) ?? definedLimit(rules, context.scope)
  const size = wish === undefined ? null : Math.min(wish, rules.limitMax)
  const position = await paginator.start(context, size ?? undefined)
  return { format, position, limit: size, ...AT_START }
}

/** Parameters of the next page, including the page size. */
export function pageParams(pagination: Pagination, state: ListingState): PageParams {
  const limit = state.limit ?? undefined
  const request = pagination.paginator.request(state.position, limit)
  if (request.url !== undefined) return request
  const values = limit === undefined ? request.values : { ...request.values, limit }
  const params =
    request.omitsLimit === true ? request.params : [...request.params, ...limitParam(pagination.rules, limit)]
  return { ...request, params, values }
}

/**
 * Advances the listing by a page. Stop rules in the documented order: stop expression → has more → total → empty → short →
 * next token → caps → loop. (Errors, rate limits and extraction come before, in the call pipeline.)
 *
 * A page that repeats the response to the same request delivers no records: they were delivered with the previous page.
 *
 * @throws Failure PAGINATION_LOOP naming the page; EXPRESSION_FAILED, UPSTREAM_INVALID_RESPONSE
 */
export async function advancePage(
  pagination: Pagination,
  state: ListingState,
  page: UpstreamPage,
  context: ListingContext,
): Promise<PageResult> {
  const { rules, paginator } = pagination
  const received = page.received ?? page.records
  const asked = requestKeyOf(paginator, state.position, page)
  const { memory, repetition } = await recordPage(state.loop, asked, received, page.idPath ?? ID_PATH)
  const isRepeated = rules.detectsLoop && repetition === 'same_answer'
  const isNew = !rules.detectsLoop || repetition === 'none' || repetition === 'changed'
  const records = isRepeated ? [] : page.records.slice(0, rules.maxRecords - state.records)
  const counted: ListingState = {
    ...state,
    pages: state.pages + 1,
    records: state.records + records.length,
    received: state.received + (isNew ? received.length : 0),
    empties: received.length === 0 ? state.empties + 1 : 0,
    loop: memory,
  }
  const previousPosition = paginator.previous?.(page)
  const previous = previousPosition === undefined ? undefined : restart(state, previousPosition)
  const step = applyCaps(
    rules,
    counted,
    await decideNextStep(pagination, counted, { ...page, received, isRepeated }, context),
  )
  const total = reportedTotal(pagination, page, counted)
  if (step.kind === 'end') return { records, state: null, previous, stopReason: step.reason, total }
  const loop = rules.detectsLoop ? detectLoop(paginator, counted, repetition, page, step.position) : counted.loop
  return { records, state: { ...counted, position: step.position, loop }, previous, stopReason: undefined, total }
}

/** The shared stop rules, then the step of the format. Also for the inner pagination of `window`. */
export async function decideNextStep(
  { rules, paginator }: Pagination,
  { position, pages, received }: Pick<ListingState, 'position' | 'pages' | 'received'>,
  page: UpstreamPage & Pick<ListingPage, 'received' | 'isRepeated'>,
  context: ListingContext,
): Promise<ListingStep> {
  if (page.isPastEnd === true) return { kind: 'end', reason: 'range_end' }
  const { values } = paginator.request(position, page.limit)
  const number = typeof values.page === 'number' ? values.page : pages
  const counted: ListingPage = { ...page, values, number, totalSeen: received }
  if (rules.stopExpression !== undefined && isTruthy(await context.evaluate(rules.stopExpression, pageRoots(counted))))
    return { kind: 'end', reason: 'expression' }
  if (rules.hasMorePath !== undefined && isFalseFlag(getAtPath(page.body, rules.hasMorePath)))
    return { kind: 'end', reason: 'has_more_false' }
  if (
    rules.hasMoreExpression !== undefined &&
    isFalseFlag(await context.evaluate(rules.hasMoreExpression, pageRoots(counted)))
  )
    return { kind: 'end', reason: 'has_more_false' }
  const total =
    rules.totalPath !== undefined && rules.stopsOnTotal
      ? Number(getAtPath(page.body, rules.totalPath) ?? Number.NaN)
      : Number.NaN
  if (received >= total) return { kind: 'end', reason: 'total_reached' }
  if (page.received.length === 0 && rules.stopsOnEmpty) return { kind: 'end', reason: 'empty_page' }
  if (rules.stopsOnShort && page.limit !== undefined && page.received.length < page.limit)
    return { kind: 'end', reason: 'short_page' }
  const step = await paginator.next(counted, position, context)
  const endsHere = page.isRepeated && rules.detectsLoop && paginator.onRepeatedPage === 'end'
  return endsHere && step.kind === 'next' && isSamePosition(paginator, page, position, step.position)
    ? { kind: 'end', reason: 'cursor_repeated' }
    : step
}

/** Parses a stored state or a caller's cursor. @throws Failure PAGE_TOKEN_INVALID when it is not one of this definition */
export function parseListingState(pagination: Pagination, state: JsonObject): ListingState {
  const { format, position, limit, loop } = state
  if (format !== pagination.format || !isJsonObject(position) || !isJsonObject(loop)) throw invalidPosition()
  return {
    format: pagination.format,
    position,
    limit: limit === null ? null : Math.min(integerAt(state, 'limit'), pagination.rules.limitMax),
    pages: integerAt(state, 'pages'),
    records: integerAt(state, 'records'),
    received: integerAt(state, 'received'),
    empties: integerAt(state, 'empties'),
    loop: parseLoopState(loop),
  }
}

function parseLoopState(loop: JsonObject): LoopDetectorState {
  const { recent } = loop
  if (!Array.isArray(recent)) throw invalidPosition()
  return {
    recent: recent.map(String),
    anchor: textAt(loop, 'anchor'),
    steps: integerAt(loop, 'steps'),
    span: integerAt(loop, 'span'),
    asked: textAt(loop, 'asked'),
    content: textAt(loop, 'content'),
    ids: textAt(loop, 'ids'),
  }
}

function restart(state: ListingState, position: JsonObject): ListingState {
  return { ...state, position, ...AT_START }
}

function definedLimit(rules: PaginationRules, scope: TemplateScope): number | undefined {
  if (typeof rules.limit === 'number' || rules.limit === undefined) return rules.limit
  const value = renderValue(rules.limit, scope)
  if (value === undefined || value === null) return undefined
  const size = typeof value === 'string' && value.trim() === '' ? Number.NaN : Number(value)
  if (Number.isSafeInteger(size) && size > 0) return size
  throw new Failure('PLACEHOLDER_UNRESOLVED', 'pagination.config.limit: the page size is not a whole number above 0', {
    metadata: { setting: 'pagination.config.limit' },
  })
}

/** The page size among the parameters of the caller; a value that is none has no effect, as the parameter is the paging's own. */
function queriedLimit({ limitKey, location }: PaginationRules, { call }: TemplateScope): number | undefined {
  if (limitKey === undefined || location !== 'query') return undefined
  const size = Number(call?.query?.[limitKey] ?? Number.NaN)
  return Number.isSafeInteger(size) && size > 0 ? size : undefined
}

function limitParam(rules: PaginationRules, limit: number | undefined): PageParam[] {
  if (rules.limitKey === undefined || limit === undefined) return []
  return [
    { location: rules.location, key: rules.limitKey, value: rules.limitType === 'string' ? String(limit) : limit },
  ]
}

/** The total that the API reports, less the entries filtered out so far: comparable with the records delivered. */
function reportedTotal({ rules, paginator }: Pagination, page: UpstreamPage, { records, received }: ListingState) {
  const claimed = rules.totalPath === undefined ? paginator.total?.(page) : getAtPath(page.body, rules.totalPath)
  const total = isJsonNumber(claimed) || typeof claimed === 'string' ? Number(claimed) : Number.NaN
  if (!Number.isSafeInteger(total) || total < 0) return undefined
  return page.received === undefined ? total : Math.max(0, total - (received - records))
}

/** Caps end a listing only where it would continue. */
function applyCaps(rules: PaginationRules, counted: ListingState, step: ListingStep): ListingStep {
  if (step.kind === 'end') return step
  if (counted.records >= rules.maxRecords) return { kind: 'end', reason: 'max_records' }
  if (counted.pages >= rules.maxPages) return { kind: 'end', reason: 'max_pages' }
  return step
}

/** Loop detection: a page must lead to a new position. @throws Failure PAGINATION_LOOP */
function detectLoop(
  paginator: Paginator,
  { pages, empties, position, loop }: ListingState,
  repetition: Repetition,
  page: UpstreamPage,
  next: JsonObject,
): LoopDetectorState {
  if (repetition === 'ignored') throw loopFailure(pages, `page ${pages} holds the same records as the page before`)
  if (empties >= EMPTY_PAGES_MAX) throw loopFailure(pages, `the last ${EMPTY_PAGES_MAX} pages were empty`)
  const isSame = isSamePosition(paginator, page, position, next)
  if (isSame) {
    if (paginator.onRepeatedPage === undefined || repetition === 'same_answer')
      throw loopFailure(pages, `page ${pages} leads back to itself`)
    if (repetition === 'changed')
      throw loopFailure(
        pages,
        `page ${pages} leads back to itself and holds the same ids as before with other contents`,
      )
  }
  const step = recordPosition(loop, requestKeyOf(paginator, next, page), isSame)
  if (step.isRepeated) throw loopFailure(pages, `page ${pages} leads back to a page already read`)
  return step.memory
}

function requestKeyOf(paginator: Paginator, position: JsonObject, page: UpstreamPage): JsonObject {
  return paginator.requestKey?.(position, page) ?? position
}

function isSamePosition(paginator: Paginator, page: UpstreamPage, one: JsonObject, other: JsonObject): boolean {
  return canonicalJson(requestKeyOf(paginator, one, page)) === canonicalJson(requestKeyOf(paginator, other, page))
}

function loopFailure(page: number, problem: string): Failure {
  return new Failure('PAGINATION_LOOP', `the listing makes no progress: ${problem}`, {
    metadata: { page: String(page) },
  })
}

/** True for a flag that is false; a missing one is not. */
function isFalseFlag(value: Json | undefined): boolean {
  return value === false || toDouble(value) === 0 || (typeof value === 'string' && /^(?:false|0|no)$/i.test(value))
}
