/**
 * Family `pagination`: how the next page of a listing is asked for. One file per format; this list is the registry.
 *
 * A format knows only its own step. What all share (page size, stop rules, caps, loop guard, resume state) is `listing.ts`.
 *
 * @module
 */
import { type FormatChoice, familySchema, formatOf } from '../format.ts'
import type { Pagination, PaginationFormat } from './paginator.ts'
import { PLAIN_PAGINATION_FORMATS } from './plain-formats.ts'
import { window } from './window.ts'

export const PAGINATION_FORMATS: readonly PaginationFormat[] = [...PLAIN_PAGINATION_FORMATS, window]

/** `{format, config}` of the family. */
export const paginationSchema = familySchema('Pagination', PAGINATION_FORMATS)

/** The behaviour of a checked choice. */
export function compilePagination({ format, config }: FormatChoice): Pagination {
  return formatOf(PAGINATION_FORMATS, format).compile(config)
}
