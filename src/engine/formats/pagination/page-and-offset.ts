import { z } from 'zod'
import { withSchema } from '../format.ts'
import { nameText, refineWith } from '../schema-types.ts'
import { integerAt, type PaginationFormat } from './paginator.ts'
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
        params:
          parsed.page_key === undefined
            ? []
            : [{ location: parsed.in, key: parsed.page_key, value: integerAt(position, 'page') }],
        values: position,
      }),
      next: (_page, position) => ({ kind: 'next', position: { page: integerAt(position, 'page') + 1 } }),
    },
  })),
}

const offsetConfig = z
  .strictObject({
    ...commonKeys,
    offset_key: nameText()
      .optional()
      .describe('Name of the offset parameter. Without it the method places `{{pagination.offset}}` itself.'),
    start_offset: z.int().min(0).default(0).describe('Offset of the first record.'),
    step: z
      .enum(['received', 'limit'])
      .default('received')
      .describe(
        'What is added per page: the records received, which survives a server that lowers the page size, or the page size.',
      ),
  })
  .superRefine(refineWith(findEndlessProblem, 'pagination.endless'))
  .superRefine(refineParamNames(['offset_key', 'limit_key']))
  .superRefine(refineWith(findStepProblem, 'pagination.step'))

/** `offset`: skips the entries already read, until a page is empty. */
export const offset: PaginationFormat = {
  format: 'offset',
  summary:
    'Skips the records already read until a page is empty. `{{pagination.offset}}` and `{{pagination.limit}}` hold the values.',
  config: offsetConfig,
  compile: withSchema(offsetConfig, (parsed) => ({
    format: 'offset',
    rules: compileRules(parsed, true),
    paginator: {
      ends: [],
      start: () => ({ offset: parsed.start_offset }),
      request: (position) => ({
        params:
          parsed.offset_key === undefined
            ? []
            : [{ location: parsed.in, key: parsed.offset_key, value: integerAt(position, 'offset') }],
        values: position,
      }),
      next: ({ received, limit }, position) => {
        const step = parsed.step === 'limit' ? (limit ?? received.length) : received.length
        return { kind: 'next', position: { offset: integerAt(position, 'offset') + step } }
      },
    },
  })),
}

function findStepProblem({ step, limit }: { readonly step: string; readonly limit?: unknown }): string | undefined {
  return step === 'limit' && limit === undefined ? 'needs limit, because step is "limit"' : undefined
}
