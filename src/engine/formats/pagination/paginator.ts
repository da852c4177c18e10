import { Failure } from '../../../foundation/base/index.ts'
import type { DotPath, Json, JsonObject } from '../../../foundation/json/index.ts'
import type { TemplateScope } from '../../expressions/placeholder.ts'
import type { TextTemplate } from '../../expressions/template.ts'
import type { EvaluateExpression, Format } from '../format.ts'

/** One way of requesting the next page. */
export interface PaginationFormat extends Format {
  readonly compile: (config: Json | undefined) => Pagination
}

/** A compiled pagination: the shared rules, and the steps of the format. */
export interface Pagination {
  readonly format: string
  readonly rules: PaginationRules
  readonly paginator: Paginator
}

/**
 * The steps of one format. Stateless: a position is plain JSON, so that another process can continue after any page.
 */
export interface Paginator {
  /** The position of the first page. @param limit page size, where one is known */
  readonly start: (context: ListingContext, limit: number | undefined) => JsonObject | Promise<JsonObject>
  /** The request parameters of a position. */
  readonly request: (position: JsonObject, limit: number | undefined) => PageParams
  /** The next position. Called only when no shared rule has ended the listing. */
  readonly next: (
    page: ListingPage,
    position: JsonObject,
    context: ListingContext,
  ) => ListingStep | Promise<ListingStep>
  /** The position of the previous page, where an API names it. */
  readonly previous?: (page: UpstreamPage) => JsonObject | undefined
  /** Total number of records, where pages of this format carry it. */
  readonly total?: (page: UpstreamPage) => number | undefined
  /** Identity of the request at a position, without its counters: equal keys are the same request. Default: the position. */
  readonly requestKey?: (position: JsonObject, page: UpstreamPage) => JsonObject
  /**
   * When a page leads to its own position and the repeated request returns the same records: the listing ends (an API that
   * repeats its last token), or an error. New records continue it in both cases (an API with a constant token). Absent: a
   * position that does not move is an error.
   */
  readonly onRepeatedPage?: 'end' | 'error'
  /** A status that means "past the end" instead of an error. */
  readonly endStatus?: number
  /** Why `next` may end the listing, for people. */
  readonly ends: readonly StopRule[]
}

/** A reason for which a listing ends, with its condition, worded to follow "it ends when". */
export interface StopRule {
  readonly reason: StopReason
  readonly when: string
}

/** Request parameters of one page. */
export interface PageParams {
  /** A link that is followed unchanged instead of the method's URL and query; the limit is then not sent. */
  readonly url?: string | undefined
  readonly params: readonly PageParam[]
  /** Values of `{{pagination.<name>}}`. */
  readonly values: JsonObject
  /** The limit is not sent with this page. */
  readonly omitsLimit?: boolean
}

/** One parameter and its location; in a body the key is a dot path. */
export interface PageParam {
  readonly location: ParamLocation
  readonly key: string
  readonly value: Json
}

export type ParamLocation = 'query' | 'body' | 'header'

/** One page: a successful response with its extracted records. */
export interface UpstreamPage {
  readonly status: number
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Json
  /** The records that `response_path` selects. */
  readonly records: readonly Json[]
  /** The entries the upstream sent, where `response_path` filters them. Absent: they are the records. */
  readonly received?: readonly Json[] | undefined
  /** Path in a record to its identifier. Default: `id`. */
  readonly idPath?: DotPath | undefined
  /** The status says that the listing is over (`endStatus`). */
  readonly isPastEnd?: boolean | undefined
  /** The URL that was requested, without authorization parameters. */
  readonly url: string
  /** The page size that was asked for, where one was. */
  readonly limit: number | undefined
}

/** A page with its counters in the listing. */
export interface ListingPage extends UpstreamPage {
  readonly received: readonly Json[]
  /** The API's number where it numbers pages, else counted from 1. */
  readonly number: number
  /** Entries received so far, those of this page included. */
  readonly totalSeen: number
  /** Values of `{{pagination.<name>}}` in its request. */
  readonly values: JsonObject
  /** The previous request and its response were the same. */
  readonly isRepeated: boolean
}

export interface ListingContext {
  readonly evaluate: EvaluateExpression
  readonly scope: TemplateScope
  readonly now: () => Date
}

/** The next step: another position, or the end. */
export type ListingStep =
  | { readonly kind: 'next'; readonly position: JsonObject }
  | { readonly kind: 'end'; readonly reason: StopReason }

/** Why a listing ended. Shown on runs and in dry runs. */
const STOP_REASONS = [
  'empty_page',
  'short_page',
  'no_cursor',
  'cursor_repeated',
  'has_more_false',
  'total_reached',
  'link_absent',
  'range_end',
  'window_end',
  'expression',
  'max_pages',
  'max_records',
  'unpaginated',
  'error_ignored',
  'error_stopped',
] as const

export type StopReason = (typeof STOP_REASONS)[number]

/** Root names of expressions over a page; missing values are `null`. */
export const PAGE_ROOTS = [
  'status',
  'headers',
  'body',
  'records',
  'count',
  'last_record',
  'url',
  'limit',
  'page',
  'offset',
  'cursor',
  'total_seen',
] as const

/** The input of expressions over a page. @param more further root names of one expression */
export function pageRoots(page: ListingPage, more: JsonObject = {}): JsonObject {
  const roots: Record<(typeof PAGE_ROOTS)[number], Json> = {
    status: page.status,
    headers: page.headers,
    body: page.body,
    records: page.records,
    count: page.received.length,
    last_record: page.records.at(-1) ?? null,
    url: page.url,
    limit: page.limit ?? null,
    page: page.number,
    offset: page.values.offset ?? null,
    cursor: page.values.cursor ?? null,
    total_seen: page.totalSeen,
  }
  return { ...roots, ...more }
}

/** A whole number of a position. @throws Failure PAGE_TOKEN_INVALID when a stored or given position does not hold it */
export function integerAt(position: JsonObject, key: string): number {
  const value = position[key]
  if (typeof value !== 'number' || !Number.isSafeInteger(value)) throw invalidPosition()
  return value
}

/** A text of a position. @throws Failure PAGE_TOKEN_INVALID */
export function textAt(position: JsonObject, key: string): string {
  const value = position[key]
  if (typeof value !== 'string') throw invalidPosition()
  return value
}

/** Error for a position that does not belong to this definition, for example because the definition changed. */
export function invalidPosition(): Failure {
  return new Failure('PAGE_TOKEN_INVALID', 'the cursor does not belong to this listing: start it again without one')
}

/** True for a token that ends a listing: null, absent or an empty text. `0`, `"0"` and `false` are values. */
export function isAbsentToken(value: Json | undefined): value is null | undefined | '' {
  return value === undefined || value === null || value === ''
}

/** The compiled shared settings. */
export interface PaginationRules {
  readonly limit: number | TextTemplate | undefined
  readonly limitKey: string | undefined
  readonly limitMax: number
  readonly limitType: 'number' | 'string'
  readonly location: ParamLocation
  readonly maxPages: number
  readonly maxRecords: number
  readonly stopsOnEmpty: boolean
  readonly stopsOnShort: boolean
  readonly hasMorePath: DotPath | undefined
  readonly hasMoreExpression: string | undefined
  readonly totalPath: DotPath | undefined
  readonly stopsOnTotal: boolean
  readonly stopExpression: string | undefined
  readonly detectsLoop: boolean
  readonly allowedOrigins: readonly TextTemplate[]
  readonly allowedPaths: readonly string[]
}
