import {
  canonicalJson,
  type DotPath,
  Failure,
  getAtPath,
  isJsonNumber,
  isJsonObject,
  type Json,
  type JsonObject,
  withDouble,
} from '../../base/index.ts'
import { renderValue, type Scope } from '../../expression/index.ts'
import { isTruthy } from '../is-truthy.ts'
import { EMPTY_LOOP_MEMORY, type LoopMemory, type Repetition, rememberPage, rememberStep } from './loop.ts'
import { pageRoots } from './page-roots.ts'
import type {
  CountedPage,
  ListingTools,
  Page,
  PageRequest,
  Pagination,
  Paginator,
  PlacedValue,
  Step,
  StopReason,
} from './paginator.ts'
import { integerAt, textAt, wrongPosition } from './position.ts'
import type { PaginationRules } from './rules.ts'

/** Where a listing is: plain JSON when stored, so that any process can go on after any page. */
export interface ListingState {
  readonly format: string
  readonly position: JsonObject
  /** The page size asked for; that of the first page holds for the whole listing. `null`: none is sent. */
  readonly limit: number | null
  readonly pages: number
  /** Records delivered. */
  readonly records: number
  /** Entries received; more than the records where `response_path` filters. */
  readonly received: number
  /** Pages in a row for which the upstream sent nothing. */
  readonly empties: number
  readonly loop: LoopMemory
}

/** What a page came to. */
export interface PageResult {
  readonly records: readonly Json[]
  /** State for the next page; `null` at the end. */
  readonly state: ListingState | null
  /** State for the page before, where the API names one. */
  readonly previous: ListingState | undefined
  /** Present at the end. */
  readonly stopReason: StopReason | undefined
  /** How many records the listing has in all, as the API claims. */
  readonly total: number | undefined
}

const AT_START = { pages: 0, records: 0, received: 0, empties: 0, loop: EMPTY_LOOP_MEMORY } as const

/** Where the identifier of a record is unless the method says otherwise. */
const ID_PATH: DotPath = ['id']

/** More empty pages in a row than any filter explains; the listing would not end. */
const EMPTY_PAGES_MAX = 1_000

/** The state before the first page. @param limit the caller's wish; absent: the definition's */
export async function startListing(
  pagination: Pagination,
  limit: number | undefined,
  tools: ListingTools,
): Promise<ListingState> {
  const { rules, paginator, format } = pagination
  const wish = limit ?? definedLimit(rules, tools.scope)
  const size = wish === undefined ? null : Math.min(wish, rules.limitMax)
  const position = await paginator.start(tools, size ?? undefined)
  return { format, position, limit: size, ...AT_START }
}

/** What the next page adds to the method's request, page size included. */
export function describePage(pagination: Pagination, state: ListingState): PageRequest {
  const limit = state.limit ?? undefined
  const request = pagination.paginator.request(state.position, limit)
  if (request.url !== undefined) return request
  const values = limit === undefined ? request.values : { ...request.values, limit }
  const placed =
    request.omitsLimit === true ? request.placed : [...request.placed, ...placedLimit(pagination.rules, limit)]
  return { ...request, placed, values }
}

/**
 * Digests a page in the published order: stop expression → has more → total → empty → short → next token → caps → loop.
 * (Error, rate limit and extraction come before, in the call pipeline.)
 *
 * A page that repeats the answer to the same request delivers nothing: its records were delivered with the page before.
 *
 * @throws Failure PAGINATION_LOOP naming the page; EXPRESSION_FAILED, UPSTREAM_INVALID_RESPONSE
 */
export async function digestPage(
  pagination: Pagination,
  state: ListingState,
  page: Page,
  tools: ListingTools,
): Promise<PageResult> {
  const { rules, paginator } = pagination
  const received = page.received ?? page.records
  const asked = identify(paginator, state.position, page)
  const { memory, repetition } = await rememberPage(state.loop, asked, received, page.idPath ?? ID_PATH)
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
  const step = capped(rules, counted, await decideStep(pagination, counted, { ...page, received, isRepeated }, tools))
  const total = claimedTotal(pagination, page, counted)
  if (step.kind === 'end') return { records, state: null, previous, stopReason: step.reason, total }
  const loop = rules.detectsLoop ? guardProgress(paginator, counted, repetition, page, step.position) : counted.loop
  return { records, state: { ...counted, position: step.position, loop }, previous, stopReason: undefined, total }
}

/** The rules that every format shares, then the format's own step. Also the inner decision of `window`. */
export async function decideStep(
  { rules, paginator }: Pagination,
  { position, pages, received }: Pick<ListingState, 'position' | 'pages' | 'received'>,
  page: Page & Pick<CountedPage, 'received' | 'isRepeated'>,
  tools: ListingTools,
): Promise<Step> {
  if (page.isPastEnd === true) return { kind: 'end', reason: 'range_end' }
  const { values } = paginator.request(position, page.limit)
  const number = typeof values.page === 'number' ? values.page : pages
  const counted: CountedPage = { ...page, values, number, totalSeen: received }
  if (rules.stopExpression !== undefined && isTruthy(await tools.evaluate(rules.stopExpression, pageRoots(counted))))
    return { kind: 'end', reason: 'expression' }
  if (rules.hasMorePath !== undefined && isNo(getAtPath(page.body, rules.hasMorePath)))
    return { kind: 'end', reason: 'has_more_false' }
  if (rules.hasMoreExpression !== undefined && isNo(await tools.evaluate(rules.hasMoreExpression, pageRoots(counted))))
    return { kind: 'end', reason: 'has_more_false' }
  const total =
    rules.totalPath !== undefined && rules.stopsOnTotal
      ? Number(getAtPath(page.body, rules.totalPath) ?? Number.NaN)
      : Number.NaN
  if (received >= total) return { kind: 'end', reason: 'total_reached' }
  if (page.received.length === 0 && rules.stopsOnEmpty) return { kind: 'end', reason: 'empty_page' }
  if (rules.stopsOnShort && page.limit !== undefined && page.received.length < page.limit)
    return { kind: 'end', reason: 'short_page' }
  const step = await paginator.next(counted, position, tools)
  const endsHere = page.isRepeated && rules.detectsLoop && paginator.whenRepeated === 'end'
  return endsHere && step.kind === 'next' && isSamePosition(paginator, page, position, step.position)
    ? { kind: 'end', reason: 'cursor_repeated' }
    : step
}

/** Reads a stored state or a caller's cursor. @throws Failure PAGE_TOKEN_INVALID when it is not one of this definition */
export function parseListingState(pagination: Pagination, state: JsonObject): ListingState {
  const { format, position, limit, loop } = state
  if (format !== pagination.format || !isJsonObject(position) || !isJsonObject(loop)) throw wrongPosition()
  return {
    format: pagination.format,
    position,
    limit: limit === null ? null : Math.min(integerAt(state, 'limit'), pagination.rules.limitMax),
    pages: integerAt(state, 'pages'),
    records: integerAt(state, 'records'),
    received: integerAt(state, 'received'),
    empties: integerAt(state, 'empties'),
    loop: parseLoopMemory(loop),
  }
}

function parseLoopMemory(loop: JsonObject): LoopMemory {
  const { recent } = loop
  if (!Array.isArray(recent)) throw wrongPosition()
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

function definedLimit(rules: PaginationRules, scope: Scope): number | undefined {
  if (typeof rules.limit === 'number' || rules.limit === undefined) return rules.limit
  const value = renderValue(rules.limit, scope)
  if (value === undefined || value === null) return undefined
  const size = typeof value === 'string' && value.trim() === '' ? Number.NaN : Number(value)
  if (Number.isSafeInteger(size) && size > 0) return size
  throw new Failure('PLACEHOLDER_UNRESOLVED', 'pagination.config.limit: the page size is not a whole number above 0', {
    metadata: { setting: 'pagination.config.limit' },
  })
}

function placedLimit(rules: PaginationRules, limit: number | undefined): PlacedValue[] {
  if (rules.limitKey === undefined || limit === undefined) return []
  return [{ place: rules.place, key: rules.limitKey, value: rules.limitType === 'string' ? String(limit) : limit }]
}

/** What the API claims, less what a filter has taken away so far: comparable with the records delivered. */
function claimedTotal({ rules, paginator }: Pagination, page: Page, { records, received }: ListingState) {
  const claimed = rules.totalPath === undefined ? paginator.total?.(page) : getAtPath(page.body, rules.totalPath)
  const total = isJsonNumber(claimed) || typeof claimed === 'string' ? Number(claimed) : Number.NaN
  if (!Number.isSafeInteger(total) || total < 0) return undefined
  return page.received === undefined ? total : Math.max(0, total - (received - records))
}

/** The caps end a listing only where it would have gone on. */
function capped(rules: PaginationRules, counted: ListingState, step: Step): Step {
  if (step.kind === 'end') return step
  if (counted.records >= rules.maxRecords) return { kind: 'end', reason: 'max_records' }
  if (counted.pages >= rules.maxPages) return { kind: 'end', reason: 'max_pages' }
  return step
}

/** @throws Failure PAGINATION_LOOP */
function guardProgress(
  paginator: Paginator,
  { pages, empties, position, loop }: ListingState,
  repetition: Repetition,
  page: Page,
  next: JsonObject,
): LoopMemory {
  if (repetition === 'ignored') throw loopFailure(pages, `page ${pages} holds the same records as the page before`)
  if (empties >= EMPTY_PAGES_MAX) throw loopFailure(pages, `the last ${EMPTY_PAGES_MAX} pages were empty`)
  const isSame = isSamePosition(paginator, page, position, next)
  if (isSame) {
    if (paginator.whenRepeated === undefined || repetition === 'same_answer')
      throw loopFailure(pages, `page ${pages} leads back to itself`)
    if (repetition === 'changed')
      throw loopFailure(
        pages,
        `page ${pages} leads back to itself and holds the same ids as before with other contents`,
      )
  }
  const step = rememberStep(loop, identify(paginator, next, page), isSame)
  if (step.isRepeated) throw loopFailure(pages, `page ${pages} leads back to a page already read`)
  return step.memory
}

function identify(paginator: Paginator, position: JsonObject, page: Page): JsonObject {
  return paginator.identify?.(position, page) ?? position
}

function isSamePosition(paginator: Paginator, page: Page, one: JsonObject, other: JsonObject): boolean {
  return canonicalJson(identify(paginator, one, page)) === canonicalJson(identify(paginator, other, page))
}

function loopFailure(page: number, problem: string): Failure {
  return new Failure('PAGINATION_LOOP', `the listing makes no progress: ${problem}`, {
    metadata: { page: String(page) },
  })
}

/** A definite no; a missing flag says nothing. */
function isNo(value: Json | undefined): boolean {
  return value === false || withDouble(value) === 0 || (typeof value === 'string' && /^(?:false|0|no)$/i.test(value))
}
