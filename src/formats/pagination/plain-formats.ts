import { cursor } from './cursor.ts'
import { dynamic } from './dynamic.ts'
import { linkHeader } from './link-header.ts'
import { offset } from './offset.ts'
import { page } from './page.ts'
import type { PaginationFormat } from './paginator.ts'
import { range } from './range.ts'

/** The formats that may also page inside the interval of a `window`. */
export const INNER_PAGINATION_FORMATS: readonly PaginationFormat[] = [page, offset, cursor, linkHeader, range, dynamic]
