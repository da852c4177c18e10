import { type DotPath, Failure, type Json, type JsonObject } from '../../base/index.ts'
import type { TemplateScope } from '../../expressions/index.ts'
import type { EvaluateExpression, Format } from '../format.ts'
import type { PaginationRules } from './rules.ts'

/** One way of asking for the next page. */
export interface PaginationFormat extends Format {
  readonly compile: (config: Json | undefined) => Pagination
}

/** A compiled strategy: the keys that every format shares, and the steps that are its own. */
export interface Pagination {
  readonly format: string
  readonly rules: PaginationRules
  readonly paginator: Paginator
}

/**
 * The steps of one format. Stateless: a position is plain JSON, so that a run can stop after any page and another process
 * can go on.
 */
export interface Paginator {
  /** Where a listing starts. @param limit page size, where one is known */
  readonly start: (tools: ListingContext, limit: number | undefined) => JsonObject | Promise<JsonObject>
  /** What a position adds to the method's request. */
  readonly request: (position: JsonObject, limit: number | undefined) => PageParams
  /** Where the page leads. Called only when no common rule ended the listing before. */
  readonly next: (page: ListingPage, position: JsonObject, tools: ListingContext) => ListingStep | Promise<ListingStep>
  /** The position before this page, where an API tells it. */
  readonly previous?: (page: UpstreamPage) => JsonObject | undefined
  /** How many records there are in all, where a page of this format tells it by itself. */
  readonly total?: (page: UpstreamPage) => number | undefined
  /** What a position asks for, without what is only counted in it; two that are equal are the same request. Default: all. */
  readonly requestKey?: (position: JsonObject, page: UpstreamPage) => JsonObject
  /**
   * What it means when a page leads to the position it was asked at, and asked again holds the same: the end of the listing
   * (an API that repeats its last token), or an error. New records go on in both cases (an API whose token is constant).
   * Absent: a position that does not move is an error at once.
   */
  readonly onRepeatedPage?: 'end' | 'error'
  /** A status that means "past the end" and not an error. */
  readonly endStatus?: number
  /** Why `next` may end the listing, for people. */
  readonly ends: readonly StopRule[]
}

/** One reason for which a listing ends, and when that is: a clause that goes on after "it ends when". */
export interface StopRule {
  readonly reason: StopReason
  readonly when: string
}

/** What one page adds to the request of the method. */
export interface PageParams {
  /** Followed exactly as given instead of the method's URL and query; the limit is then not sent. */
  readonly url?: string | undefined
  readonly params: readonly PageParam[]
  /** Values of `{{pagination.<name>}}`. */
  readonly values: JsonObject
  /** The limit is not sent with this page. */
  readonly omitsLimit?: boolean
}

/** One value and where it goes; in a body the key is a dotted path. */
export interface PageParam {
  readonly location: ParamLocation
  readonly key: string
  readonly value: Json
}

export type ParamLocation = 'query' | 'body' | 'header'

/** One answered page: a success from which the records have been extracted. */
export interface UpstreamPage {
  readonly status: number
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Json
  /** What `response_path` selects. */
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

/** A page with its place in the listing. */
export interface ListingPage extends UpstreamPage {
  readonly received: readonly Json[]
  /** The API's number where it numbers pages, else counted from 1. */
  readonly number: number
  /** Entries received so far, those of this page included. */
  readonly totalSeen: number
  /** Values of `{{pagination.<name>}}` with which it was asked for. */
  readonly values: JsonObject
  /** The same request was answered in the same way just before. */
  readonly isRepeated: boolean
}

export interface ListingContext {
  readonly evaluate: EvaluateExpression
  readonly scope: TemplateScope
  readonly now: () => Date
}

/** Where a page leads: to another position, or to the end. */
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

/** The names that every expression over a page starts from; what a page has not is `null`. */
export const PAGE_ROOTS = [
  ...(['status', 'headers', 'body', 'records', 'count', 'last_record'] as const),
  ...(['url', 'limit', 'page', 'offset', 'cursor', 'total_seen'] as const),
] as const

/** What the expressions of a pagination config see of a page. @param more of one expression only */
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

/** The refusal of a position that does not belong to this definition, for example because the definition changed. */
export function invalidPosition(): Failure {
  return new Failure('PAGE_TOKEN_INVALID', 'the cursor does not belong to this listing: start it again without one')
}

/** Tells whether a token ends a listing: null, absent or empty text. `0`, `"0"` and `false` are values. */
export function isAbsentToken(value: Json | undefined): value is null | undefined | '' {
  return value === undefined || value === null || value === ''
}
