import { z } from 'zod'
import { withSchema } from '../format.ts'
import { nameText, refineWith } from '../vocabulary.ts'
import type { PaginationFormat } from './paginator.ts'
import { integerAt } from './position.ts'
import { commonKeys, compileRules, findEndlessProblem, refineParamNames } from './rules.ts'

const pageConfig = z
  .strictObject({
    ...commonKeys,
    page_key: nameText()
      .optional()
      .describe('Name of the page parameter. Without it the method places `{{pagination.page}}` itself.'),
    start_page: z.int().min(0).default(1).describe('Number of the first page.'),
  })
  .superRefine(refineWith(findEndlessProblem, 'pagination.endless'))
  .superRefine(refineParamNames(['page_key', 'limit_key']))

/** `page`: numbered pages, until one is empty. */
export const page: PaginationFormat = {
  format: 'page',
  summary: 'Counts pages up until one is empty. `{{pagination.page}}` and `{{pagination.limit}}` hold the values.',
  config: pageConfig,
  compile: withSchema(pageConfig, (parsed) => ({
    format: 'page',
    rules: compileRules(parsed, true),
    paginator: {
      ends: [],
      start: () => ({ page: parsed.start_page }),
      request: (position) => ({
        placed:
          parsed.page_key === undefined
            ? []
            : [{ place: parsed.in, key: parsed.page_key, value: integerAt(position, 'page') }],
        values: position,
      }),
      next: (_page, position) => ({ kind: 'next', position: { page: integerAt(position, 'page') + 1 } }),
    },
  })),
}
