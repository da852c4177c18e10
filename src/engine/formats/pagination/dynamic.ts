import { z } from 'zod'
import { isJsonObject, type Json, type JsonObject } from '../../../foundation/json/index.ts'
import { withSchema } from '../format.ts'
import { expressionText } from '../schema-types.ts'
import { PAGE_ROOTS, type PageParam, type PageParams, type PaginationFormat, pageRoots } from './paginator.ts'
import { commonKeys, compileRules, refineParamNames } from './rules.ts'

/** Root names of the expression for the first values. */
const CALL_ROOTS = ['query', 'args', 'context'] as const

/** Root names of the expressions for later values: the page and its request. */
const VALUES_ROOTS = [...PAGE_ROOTS, 'query', 'requestOptions', 'paginationValues'] as const

const config = z
  .strictObject({
    ...commonKeys,
    get_initial_pagination_values_expression: expressionText(CALL_ROOTS)
      .optional()
      .describe(
        'JSONata over `query`, `args`, `context` of the call that returns the values of the first page. Default: none.',
      ),
    get_pagination_values_expression: expressionText(VALUES_ROOTS).describe(
      'JSONata over the page and `paginationValues` that returns the values of the next page; null ends the listing.',
    ),
    get_cursor_from_response_expression: expressionText(VALUES_ROOTS)
      .optional()
      .describe('JSONata over the page; no value ends the listing.'),
  })
  .superRefine(refineParamNames(['limit_key']))

/** `dynamic`: paging by expressions, for APIs that no other format fits. */
export const dynamic: PaginationFormat = {
  format: 'dynamic',
  summary:
    'JSONata computes the values of each page: objects `query`, `headers`, `body` are added to the request, `url` is followed, and every value is `{{pagination.<name>}}`.',
  config,
  compile: withSchema(config, (parsed) => ({
    format: 'dynamic',
    rules: compileRules(parsed, false),
    paginator: {
      ends: [{ reason: 'no_cursor', when: 'the expressions give no values for a next page' }],
      onRepeatedPage: 'error',
      start: async ({ evaluate, scope }) => {
        const initial = parsed.get_initial_pagination_values_expression
        const roots = { query: scope.call.query ?? {}, args: scope.call.args ?? {}, context: scope.account.context }
        return { values: initial === undefined ? {} : objectOf(await evaluate(initial, roots)) }
      },
      request: (position) => requestFromValues(objectOf(position.values)),
      next: async (page, position, { evaluate }) => {
        const roots = pageRoots(page, { ...requestRoots(page.url), paginationValues: objectOf(position.values) })
        const surfaced = parsed.get_cursor_from_response_expression
        if (surfaced !== undefined && ((await evaluate(surfaced, roots)) ?? null) === null)
          return { kind: 'end', reason: 'no_cursor' }
        const values = await evaluate(parsed.get_pagination_values_expression, roots)
        if (!isJsonObject(values)) return { kind: 'end', reason: 'no_cursor' }
        return { kind: 'next', position: { values } }
      },
    },
  })),
}

function requestFromValues(values: JsonObject): PageParams {
  const params = [
    ...pageParamsIn('query', values.query),
    ...pageParamsIn('header', values.headers),
    ...pageParamsIn('body', values.body),
  ]
  return { url: typeof values.url === 'string' ? values.url : undefined, params, values }
}

function pageParamsIn(location: PageParam['location'], values: Json | undefined): PageParam[] {
  return Object.entries(objectOf(values)).map(([key, value]) => ({ location, key, value }))
}

function requestRoots(url: string): JsonObject {
  const query = Object.fromEntries(new URL(url).searchParams)
  return { query, requestOptions: { url, query } }
}

function objectOf(value: Json | undefined): JsonObject {
  return isJsonObject(value) ? value : {}
}
