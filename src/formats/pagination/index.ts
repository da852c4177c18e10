/**
 * Family `pagination`: how the next page of a listing is asked for. One file per format; this list is the registry.
 *
 * A format knows only its own step. What all share (page size, stop rules, caps, loop guard, resume state) is `listing.ts`.
 *
 * @module
 */

import { type FormatChoice, formatUnion, getFormat } from '../format.ts'
import type { Pagination, PaginationFormat } from './paginator.ts'
import { INNER_PAGINATION_FORMATS, window } from './window.ts'

export const PAGINATION_FORMATS: readonly PaginationFormat[] = [...INNER_PAGINATION_FORMATS, window]

/** `{format, config}` of the family. */
export const paginationSchema = formatUnion('Pagination', PAGINATION_FORMATS)

/** The behaviour of a checked choice. */
export function compilePagination({ format, config }: FormatChoice): Pagination {
  return getFormat(PAGINATION_FORMATS, format).compile(config)
}
