import { z } from 'zod'
import { getAtPath, type Json, type JsonObject, parseDotPath } from '../../base/index.ts'
import { parsing } from '../format.ts'
import { expressionText, fieldPath, refineWith } from '../vocabulary.ts'
import { absoluteLink } from './link.ts'
import { pageRoots } from './page-roots.ts'
import type { ListingTools, Page, PageRequest, PaginationFormat, Paginator, Place, Step } from './paginator.ts'
import { isAbsentToken, textAt } from './position.ts'
import { commonKeys, compileRules } from './rules.ts'

const config = z
  .strictObject({
    ...commonKeys,
    cursor_path: z
      .string()
      .min(1)
      .optional()
      .describe('Where the next cursor is: a dotted path in the body, or a header name.'),
    cursor_path_object: z
      .enum(['body', 'header'])
      .default('body')
      .describe('Whether `cursor_path` reads the body or a header.'),
    cursor_expression: expressionText().optional().describe('JSONata over the page that returns the next cursor.'),
    cursor_from_last_record: fieldPath()
      .optional()
      .describe('Keyset paging: path in the last record, for example `id`.'),
    cursor_key: z
      .string()
      .min(1)
      .optional()
      .describe('Name of the cursor parameter. Without it the method places `{{pagination.cursor}}` itself.'),
    prev_cursor_path: fieldPath().optional().describe('Path in the body to the cursor of the page before.'),
    has_next_path: fieldPath().optional().describe('The same as `has_more_path`.'),
    is_link: z
      .boolean()
      .default(false)
      .describe('The cursor is a URL, absolute or relative, and is followed as given.'),
    add_to_query: z.boolean().optional().describe('The same as `in: query` for the cursor.'),
    add_to_body: z.boolean().optional().describe('The same as `in: body` for the cursor.'),
    allow_empty_page_cursor: z
      .boolean()
      .default(true)
      .describe('An empty page with a cursor goes on; false is `stop_on_empty: true`.'),
    ignore_limit_in_pagination: z.boolean().default(false).describe('The page size is sent with the first page only.'),
  })
  .superRefine(refineWith(findCursorProblem, 'pagination.cursor_source'))

type CursorConfig = z.output<typeof config>

/** `cursor`: passes on a token that the page before held. */
export const cursor: PaginationFormat = {
  format: 'cursor',
  summary:
    'Sends back the token of the page before, in query, body or header, or follows it when it is a link. `{{pagination.cursor}}` holds it.',
  config,
  compile: parsing(config, (parsed) => ({
    format: 'cursor',
    rules: compileRules(
      { ...parsed, has_more_path: parsed.has_more_path ?? parsed.has_next_path },
      !parsed.allow_empty_page_cursor,
    ),
    paginator: cursorPaginator(parsed),
  })),
}

function cursorPaginator(parsed: CursorConfig): Paginator {
  const place: Place = parsed.add_to_body ? 'body' : parsed.add_to_query ? 'query' : parsed.in
  const readToken = tokenReader(parsed)
  const previousPath = parsed.prev_cursor_path === undefined ? undefined : parseDotPath(parsed.prev_cursor_path)
  const position = (token: Json, url: string): JsonObject =>
    parsed.is_link ? { url: absoluteLink(String(token), url) } : { cursor: token }
  const unchanged = parsed.detect_loop ? ', or it is the one that was sent' : ''
  return {
    ends: [{ reason: 'no_cursor', when: `the page names no next ${parsed.is_link ? 'link' : 'cursor'}${unchanged}` }],
    start: () => ({}),
    request: (at) => cursorRequest(parsed, place, at),
    next: async (page, at, tools): Promise<Step> => {
      const token = await readToken(page, tools)
      if (isAbsentToken(token)) return { kind: 'end', reason: 'no_cursor' }
      const next = position(token, page.url)
      const isUnchanged = next.cursor === at.cursor && next.url === at.url
      return isUnchanged && parsed.detect_loop ? { kind: 'end', reason: 'no_cursor' } : { kind: 'next', position: next }
    },
    previous: ({ body, url }) => {
      const token = previousPath === undefined ? undefined : getAtPath(body, previousPath)
      return isAbsentToken(token) ? undefined : position(token, url)
    },
  }
}

function cursorRequest(parsed: CursorConfig, place: Place, at: JsonObject): PageRequest {
  if (at.url !== undefined) return { url: textAt(at, 'url'), placed: [], values: {} }
  if (at.cursor === undefined) return { placed: [], values: {} }
  const placed = parsed.cursor_key === undefined ? [] : [{ place, key: parsed.cursor_key, value: at.cursor }]
  return { placed, values: { cursor: at.cursor }, omitsLimit: parsed.ignore_limit_in_pagination }
}

type TokenReader = (page: Page, tools: ListingTools) => Json | undefined | Promise<Json | undefined>

function tokenReader(parsed: CursorConfig): TokenReader {
  const { cursor_expression, cursor_from_last_record, cursor_path = '' } = parsed
  if (cursor_expression !== undefined) return (page, { evaluate }) => evaluate(cursor_expression, pageRoots(page))
  if (cursor_from_last_record !== undefined) {
    const path = parseDotPath(cursor_from_last_record)
    return ({ records }) => getAtPath(records.at(-1), path)
  }
  if (parsed.cursor_path_object === 'header') return ({ headers }) => headers[cursor_path.toLowerCase()]
  const path = parseDotPath(cursor_path)
  return ({ body }) => getAtPath(body, path)
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
