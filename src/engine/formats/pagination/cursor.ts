import { z } from 'zod'
import { Failure } from '../../../foundation/base/index.ts'
import { type DotPath, getAtPath, type Json, type JsonObject, parseDotPath } from '../../../foundation/json/index.ts'
import { withSchema } from '../format.ts'
import { expressionText, fieldPath, nameText, refineWith } from '../schema-types.ts'
import { absoluteLink } from './link-header.ts'
import {
  isAbsentToken,
  type ListingContext,
  type ListingPage,
  type ListingStep,
  PAGE_ROOTS,
  type PageParams,
  type PaginationFormat,
  type Paginator,
  type ParamLocation,
  pageRoots,
  textAt,
} from './paginator.ts'
import { commonKeys, compileRules, findParamNameProblem, refineParamNames } from './rules.ts'

const keys = z.strictObject({
  ...commonKeys,
  cursor_path: nameText().optional().describe('Where the next cursor is: a path in the body, or a header name.'),
  cursor_path_object: z
    .enum(['body', 'header'])
    .default('body')
    .describe('Whether `cursor_path` reads the body or a header.'),
  cursor_expression: expressionText(PAGE_ROOTS)
    .optional()
    .describe('JSONata over the page that returns the next cursor.'),
  cursor_from_last_record: fieldPath().optional().describe('Keyset paging: path in the last record, for example `id`.'),
  cursor_key: nameText()
    .optional()
    .describe('Name of the cursor parameter. Without it the method places `{{pagination.cursor}}` itself.'),
  prev_cursor_path: fieldPath().optional().describe('Path in the body to the cursor of the page before.'),
  has_next_path: fieldPath().optional().describe('The same as `has_more_path`.'),
  is_link: z.boolean().default(false).describe('The cursor is a URL, absolute or relative, and is followed as given.'),
  add_to_query: z.boolean().optional().describe('The same as `in: query` for the cursor.'),
  add_to_body: z.boolean().optional().describe('The same as `in: body` for the cursor.'),
  allow_empty_page_cursor: z
    .boolean()
    .default(true)
    .describe('An empty page with a cursor continues the listing; false is `stop_on_empty: true`.'),
  ignore_limit_in_pagination: z.boolean().default(false).describe('The page size is sent with the first page only.'),
})

type CursorConfig = z.output<typeof keys>

const config = keys
  .superRefine(refineWith(findCursorProblem, 'pagination.cursor_source'))
  .superRefine(refineParamNames(['limit_key']))
  .superRefine(refineNames)

/** `cursor`: sends the token of the previous page. */
export const cursor: PaginationFormat = {
  format: 'cursor',
  summary:
    'Sends back the token of the page before, in query, body or header, or follows it when it is a link. `{{pagination.cursor}}` holds it.',
  config,
  compile: withSchema(config, (parsed) => ({
    format: 'cursor',
    rules: compileRules(
      { ...parsed, has_more_path: parsed.has_more_path ?? parsed.has_next_path },
      !parsed.allow_empty_page_cursor,
    ),
    paginator: cursorPaginator(parsed),
  })),
}

function cursorPaginator(parsed: CursorConfig): Paginator {
  const location = paramLocationOf(parsed)
  const readToken = tokenReader(parsed)
  const previousPath = parsed.prev_cursor_path === undefined ? undefined : parseDotPath(parsed.prev_cursor_path)
  const position = (token: Json, url: string): JsonObject =>
    parsed.is_link ? { url: absoluteLink(String(token), url) } : { cursor: token }
  return {
    ends: [{ reason: 'no_cursor', when: `the page names no next ${parsed.is_link ? 'link' : 'cursor'}` }],
    onRepeatedPage: 'end',
    requestKey: (at, { url }) => (parsed.is_link ? { url: at.url ?? url } : at),
    start: () => ({}),
    request: (at) => cursorRequest(parsed, location, at),
    next: async (page, _at, context): Promise<ListingStep> => {
      const token = await readToken(page, context)
      if (isAbsentToken(token)) return { kind: 'end', reason: 'no_cursor' }
      return { kind: 'next', position: position(token, page.url) }
    },
    previous: ({ body, url }) => {
      const token = previousPath === undefined ? undefined : getAtPath(body, previousPath)
      return isAbsentToken(token) ? undefined : position(token, url)
    },
  }
}

function cursorRequest(parsed: CursorConfig, location: ParamLocation, at: JsonObject): PageParams {
  if (at.url !== undefined) return { url: textAt(at, 'url'), params: [], values: {} }
  if (at.cursor === undefined) return { params: [], values: {} }
  const params = parsed.cursor_key === undefined ? [] : [{ location, key: parsed.cursor_key, value: at.cursor }]
  return { params, values: { cursor: at.cursor }, omitsLimit: parsed.ignore_limit_in_pagination }
}

type TokenReader = (page: ListingPage, context: ListingContext) => Json | undefined | Promise<Json | undefined>

function tokenReader(parsed: CursorConfig): TokenReader {
  const { cursor_expression, cursor_from_last_record, cursor_path = '' } = parsed
  if (cursor_expression !== undefined) return (page, { evaluate }) => evaluate(cursor_expression, pageRoots(page))
  if (cursor_from_last_record !== undefined) {
    const path = parseDotPath(cursor_from_last_record)
    return (page) => keyOfLastRecord(page, path, cursor_from_last_record)
  }
  if (parsed.cursor_path_object === 'header') return ({ headers }) => headers[cursor_path.toLowerCase()]
  const path = parseDotPath(cursor_path)
  return ({ body }) => getAtPath(body, path)
}

/**
 * Keyset paging: the key of the last received entry, or of the last record where `response_path` computes the key.
 *
 * @throws Failure UPSTREAM_INVALID_RESPONSE when the last entry has no such key
 */
function keyOfLastRecord({ records, received }: ListingPage, path: DotPath, text: string): Json | undefined {
  const key = getAtPath(received.at(-1), path) ?? getAtPath(records.at(-1), path)
  if (received.length > 0 && isAbsentToken(key))
    throw new Failure(
      'UPSTREAM_INVALID_RESPONSE',
      `the last record of the page has no ${text}, which cursor_from_last_record needs to ask for the next page`,
    )
  return key
}

function paramLocationOf(parsed: CursorConfig): ParamLocation {
  return parsed.add_to_body ? 'body' : parsed.add_to_query ? 'query' : parsed.in
}

/** The syntax of the parameter's name and of the path depends on their location. */
function refineNames(parsed: CursorConfig, context: z.RefinementCtx<CursorConfig>): void {
  const { cursor_key, cursor_path, cursor_path_object } = parsed
  const problems = {
    cursor_key: cursor_key === undefined ? undefined : findParamNameProblem(paramLocationOf(parsed), cursor_key),
    cursor_path: cursor_path === undefined ? undefined : findParamNameProblem(cursor_path_object, cursor_path),
  }
  for (const [key, message] of Object.entries(problems))
    if (message !== undefined)
      context.addIssue({
        code: 'custom',
        path: [key],
        message,
        params: { rule: key === 'cursor_path' ? 'path' : 'pagination.place' },
      })
}

function findCursorProblem(parsed: CursorConfig): string | undefined {
  const sources = [parsed.cursor_path, parsed.cursor_expression, parsed.cursor_from_last_record].filter(
    (source) => source !== undefined,
  )
  if (sources.length !== 1) return 'needs exactly one of cursor_path, cursor_expression or cursor_from_last_record'
  if (parsed.is_link && parsed.cursor_key !== undefined)
    return 'has both is_link and cursor_key: a link is followed as given'
  if (parsed.add_to_body && parsed.add_to_query) return 'has both add_to_body and add_to_query'
  return undefined
}
