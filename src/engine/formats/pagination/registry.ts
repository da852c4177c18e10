/**
 * `pagination`: how the next page of a listing is requested. The registry of its formats.
 *
 * A format knows only its own step. `listing.ts` holds what all share: page size, stop rules, caps, loop detection, state.
 *
 * @module
 */
import { type FormatChoice, formatUnion, getFormat } from '../format.ts'
import type { Pagination, PaginationFormat } from './paginator.ts'
import { INNER_PAGINATION_FORMATS, window } from './window.ts'

export const PAGINATION_FORMATS: readonly PaginationFormat[] = [...INNER_PAGINATION_FORMATS, window]

/** Schema of `pagination`. */
export const paginationSchema = formatUnion('Pagination', PAGINATION_FORMATS)

/** Compiles a checked `{format, config}`. */
export function compilePagination({ format, config }: FormatChoice): Pagination {
  return getFormat(PAGINATION_FORMATS, format).compile(config)
}
