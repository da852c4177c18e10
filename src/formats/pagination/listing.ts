import { Failure, getAtPath, isJsonObject, type Json, type JsonObject } from '../../base/index.ts'
import { renderText, renderValue, type Scope } from '../../expression/index.ts'
import { isTruthy } from '../is-truthy.ts'
import { EMPTY_LOOP_MEMORY, type LoopMemory, rememberContent, rememberPosition } from './loop.ts'
import { pageRoots } from './page-roots.ts'
import type { ListingTools, Page, PageRequest, Pagination, PlacedValue, Step, StopReason } from './paginator.ts'
import { integerAt, wrongPosition } from './position.ts'
import type { PaginationRules } from './rules.ts'

/** Where a listing is: plain JSON when stored, so that any process can go on after any page. */
export interface ListingState {
  readonly format: string
  readonly position: JsonObject
  /** The page size asked for; that of the first page holds for the whole listing. `null`: none is sent. */
  readonly limit: number | null
  readonly pages: number
  readonly records: number
  /** Empty pages in a row. */
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
  return { format, position, limit: size, pages: 0, records: 0, empties: 0, loop: EMPTY_LOOP_MEMORY }
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
 * @throws Failure PAGINATION_LOOP naming the page; EXPRESSION_FAILED
 */
export async function digestPage(
  pagination: Pagination,
  state: ListingState,
  page: Page,
  tools: ListingTools,
): Promise<PageResult> {
  const { rules } = pagination
  const room = rules.maxRecords - state.records
  const records = page.records.length > room ? page.records.slice(0, room) : page.records
  const counted: ListingState = {
    ...state,
    pages: state.pages + 1,
    records: state.records + records.length,
    empties: page.records.length === 0 ? state.empties + 1 : 0,
  }
  const previousPosition = pagination.paginator.previous?.(page)
  const previous = previousPosition === undefined ? undefined : restart(state, previousPosition)
  const step = capped(rules, counted, await decideStep(pagination, counted, page, tools))
  const total = claimedTotal(pagination, page)
  if (step.kind === 'end') return { records, state: null, previous, stopReason: step.reason, total }
  const loop = rules.detectsLoop ? guardProgress(counted, page, step.position) : counted.loop
  return { records, state: { ...counted, position: step.position, loop }, previous, stopReason: undefined, total }
}

/** The rules that every format shares, then the format's own step. Also the inner decision of `window`. */
export async function decideStep(
  { rules, paginator }: Pagination,
  counted: Pick<ListingState, 'position' | 'pages' | 'records'>,
  page: Page,
  tools: ListingTools,
): Promise<Step> {
  const more = { page: counted.pages, total_seen: counted.records }
  if (rules.stopExpression !== undefined && isTruthy(await tools.evaluate(rules.stopExpression, pageRoots(page, more))))
    return { kind: 'end', reason: 'expression' }
  if (rules.hasMorePath !== undefined && isNo(getAtPath(page.body, rules.hasMorePath)))
    return { kind: 'end', reason: 'has_more_false' }
  if (
    rules.hasMoreExpression !== undefined &&
    isNo(await tools.evaluate(rules.hasMoreExpression, pageRoots(page, more)))
  )
    return { kind: 'end', reason: 'has_more_false' }
  const total =
    rules.totalPath !== undefined && rules.stopsOnTotal
      ? Number(getAtPath(page.body, rules.totalPath) ?? Number.NaN)
      : Number.NaN
  if (counted.records >= total) return { kind: 'end', reason: 'total_reached' }
  if (page.records.length === 0 && rules.stopsOnEmpty) return { kind: 'end', reason: 'empty_page' }
  if (rules.stopsOnShort && page.limit !== undefined && page.records.length < page.limit)
    return { kind: 'end', reason: 'short_page' }
  return paginator.next(page, counted.position, tools)
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
    empties: integerAt(state, 'empties'),
    loop: parseLoopMemory(loop),
  }
}

function parseLoopMemory(loop: JsonObject): LoopMemory {
  const { recent, anchor, content } = loop
  const isMemory = Array.isArray(recent) && typeof anchor === 'string' && typeof content === 'string'
  if (!isMemory) throw wrongPosition()
  return { recent: recent.map(String), anchor, content, steps: integerAt(loop, 'steps'), span: integerAt(loop, 'span') }
}

function restart(state: ListingState, position: JsonObject): ListingState {
  return { ...state, position, pages: 0, records: 0, empties: 0, loop: EMPTY_LOOP_MEMORY }
}

function definedLimit(rules: PaginationRules, scope: Scope): number | undefined {
  if (typeof rules.limit === 'number' || rules.limit === undefined) return rules.limit
  const size = Number(renderValue(rules.limit, scope) ?? Number.NaN)
  if (Number.isNaN(size)) return undefined
  if (Number.isSafeInteger(size) && size > 0) return size
  throw new Failure(
    'PLACEHOLDER_UNRESOLVED',
    `the page size ${renderText(rules.limit, scope)} is not a whole number above 0`,
  )
}

function placedLimit(rules: PaginationRules, limit: number | undefined): PlacedValue[] {
  if (rules.limitKey === undefined || limit === undefined) return []
  return [{ place: rules.place, key: rules.limitKey, value: rules.limitType === 'string' ? String(limit) : limit }]
}

function claimedTotal({ rules, paginator }: Pagination, page: Page): number | undefined {
  const claimed = rules.totalPath === undefined ? paginator.total?.(page) : getAtPath(page.body, rules.totalPath)
  const total = typeof claimed === 'number' || typeof claimed === 'string' ? Number(claimed) : Number.NaN
  return Number.isSafeInteger(total) && total >= 0 ? total : undefined
}

/** The caps end a listing only where it would have gone on. */
function capped(rules: PaginationRules, counted: ListingState, step: Step): Step {
  if (step.kind === 'end') return step
  if (counted.records >= rules.maxRecords) return { kind: 'end', reason: 'max_records' }
  if (counted.pages >= rules.maxPages) return { kind: 'end', reason: 'max_pages' }
  return step
}

function guardProgress(counted: ListingState, page: Page, next: JsonObject): LoopMemory {
  const content = rememberContent(counted.loop, page.records)
  if (content.isRepeated)
    throw loopFailure(counted.pages, `page ${counted.pages} holds the same records as the page before`)
  if (counted.empties >= EMPTY_PAGES_MAX)
    throw loopFailure(counted.pages, `the last ${EMPTY_PAGES_MAX} pages were empty`)
  const position = rememberPosition(content.memory, next)
  if (position.isRepeated) throw loopFailure(counted.pages, `page ${counted.pages} leads back to a page already read`)
  return position.memory
}

function loopFailure(page: number, problem: string): Failure {
  return new Failure('PAGINATION_LOOP', `the listing makes no progress: ${problem}`, {
    metadata: { page: String(page) },
  })
}

/** A definite no; a missing flag says nothing. */
function isNo(value: Json | undefined): boolean {
  return value === false || value === 0 || (typeof value === 'string' && /^(?:false|0|no)$/i.test(value))
}
