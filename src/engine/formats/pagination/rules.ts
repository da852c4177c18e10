import { z } from 'zod'
import { type DotPath, formatDotPath, parseDotPath } from '../../../foundation/json/index.ts'
import { compileTemplate } from '../../expressions/template.ts'
import {
  expressionText,
  fieldPath,
  findHeaderNameProblem,
  findPathProblem,
  listOf,
  nameText,
  templatedInteger,
  templateText,
} from '../schema-types.ts'
import { PAGE_ROOTS, type Pagination, type PaginationRules, type ParamLocation, type StopRule } from './paginator.ts'

/** Largest page size a definition may ask for. */
const LIMIT_MAX = 100_000

/** Settings of all pagination formats. */
export const commonKeys = {
  limit: templatedInteger(1, LIMIT_MAX).optional().describe('Page size to ask for when the caller names none.'),
  limit_key: nameText().optional().describe('Name of the parameter for the page size. Without it no size is sent.'),
  max_limit: z
    .int()
    .min(1)
    .max(LIMIT_MAX)
    .optional()
    .describe('Largest page size the API accepts; larger wishes are lowered to it.'),
  limit_data_type: z.enum(['number', 'string']).default('number').describe('JSON type of the page size in a body.'),
  in: z
    .enum(['query', 'body', 'header'])
    .default('query')
    .describe('Where page parameters are sent; in a body their names are paths.'),
  max_pages: z.int().min(1).optional().describe('The listing ends after this many pages (`max_pages`).'),
  max_records: z.int().min(1).optional().describe('The listing ends after this many records (`max_records`).'),
  stop_on_empty: z
    .boolean()
    .optional()
    .describe('An empty page ends the listing. Default: true; false where a cursor or link decides.'),
  stop_on_short: z
    .boolean()
    .default(false)
    .describe(
      'A page shorter than the page size ends the listing. Off, because some APIs send short pages in mid-stream.',
    ),
  has_more_path: fieldPath()
    .optional()
    .describe('Path in the body to a flag; false, "false", 0 or "0" ends the listing.'),
  has_more_expression: expressionText(PAGE_ROOTS)
    .optional()
    .describe('JSONata over the page; false ends the listing, no value has no effect.'),
  total_path: fieldPath()
    .optional()
    .describe('Path in the body to the number of all records; a hint unless `stop_on_total`.'),
  stop_on_total: z
    .boolean()
    .default(false)
    .describe('The listing ends when as many records were read as `total_path` reports.'),
  stop_expression: expressionText(PAGE_ROOTS)
    .optional()
    .describe('JSONata over the page; a truthy result ends the listing after this page.'),
  detect_loop: z
    .boolean()
    .default(true)
    .describe(
      'A listing that makes no progress is the error PAGINATION_LOOP. A cursor or link that repeats is followed as long as new records come, and ends the listing (`cursor_repeated`) when they do not.',
    ),
  allowed_origins: listOf(templateText())
    .default([])
    .describe("Origins besides the request's own that a next link may lead to, for example https://eu.example.com."),
  allowed_paths: listOf(nameText())
    .default([])
    .describe(
      "Paths besides the request's own that a next link may lead to; `*` stands for any characters, as in `/repositories/*`.",
    ),
} as const

const commonConfig = z.strictObject(commonKeys)

type CommonConfig = z.output<typeof commonConfig>

/**
 * Compiles the shared settings.
 *
 * @param stopsOnEmpty the format's default for `stop_on_empty`
 */
export function compileRules(config: CommonConfig, stopsOnEmpty: boolean): PaginationRules {
  return {
    limit: typeof config.limit === 'string' ? compileTemplate(config.limit) : config.limit,
    limitKey: config.limit_key,
    limitMax: config.max_limit ?? LIMIT_MAX,
    limitType: config.limit_data_type,
    location: config.in,
    maxPages: config.max_pages ?? Number.POSITIVE_INFINITY,
    maxRecords: config.max_records ?? Number.POSITIVE_INFINITY,
    stopsOnEmpty: config.stop_on_empty ?? stopsOnEmpty,
    stopsOnShort: config.stop_on_short,
    hasMorePath: optionalPath(config.has_more_path),
    hasMoreExpression: config.has_more_expression,
    totalPath: optionalPath(config.total_path),
    stopsOnTotal: config.stop_on_total,
    stopExpression: config.stop_expression,
    detectsLoop: config.detect_loop,
    allowedOrigins: config.allowed_origins.map(compileTemplate),
    allowedPaths: config.allowed_paths,
  }
}

/** The problem of a page parameter's name: in a body it is a path, in a header a header name. */
export function findParamNameProblem(location: ParamLocation, name: string): string | undefined {
  switch (location) {
    case 'body':
      return findPathProblem(name)
    case 'header':
      return findHeaderNameProblem(name)
    case 'query':
      return undefined
  }
}

/** A finding for each setting whose parameter name is not valid in its location. */
export function refineParamNames<C extends { readonly in: ParamLocation }>(names: readonly (keyof C & string)[]) {
  return (config: C, context: z.RefinementCtx<C>): void => {
    for (const key of names) {
      const name = config[key]
      const problem = typeof name === 'string' ? findParamNameProblem(config.in, name) : undefined
      if (problem !== undefined)
        context.addIssue({ code: 'custom', path: [key], message: problem, params: { rule: 'pagination.place' } })
    }
  }
}

/** A parsed path, or nothing when the config has none. */
function optionalPath(text: string | undefined): DotPath | undefined {
  return text === undefined ? undefined : parseDotPath(text)
}

/** The problem of a counted listing (`page`, `offset`) that no rule ends. */
export function findEndlessProblem(config: Partial<CommonConfig>): string | undefined {
  if (config.stop_on_empty !== false) return undefined
  const ends = [
    config.has_more_path,
    config.has_more_expression,
    config.stop_expression,
    config.max_pages,
    config.max_records,
  ]
  const canEnd = ends.some((end) => end !== undefined) || config.stop_on_short === true || config.stop_on_total === true
  return canEnd
    ? undefined
    : 'never ends: with stop_on_empty off it needs has_more_path, stop_expression, stop_on_total or max_pages'
}

/** All stop rules of a listing, in the order of evaluation. */
export function listStopRules({ rules, paginator }: Pagination): readonly StopRule[] {
  const { hasMorePath, totalPath, maxRecords, maxPages } = rules
  const { endStatus } = paginator
  const stops: (StopRule | false | undefined)[] = [
    endStatus !== undefined && { reason: 'range_end', when: `the status is ${endStatus}` },
    rules.stopExpression !== undefined && { reason: 'expression', when: 'stop_expression is true of the page' },
    hasMorePath && {
      reason: 'has_more_false',
      when: `${formatDotPath(hasMorePath, 'body')} is a no: false, 0 or "no"`,
    },
    rules.hasMoreExpression !== undefined && { reason: 'has_more_false', when: 'has_more_expression is a no' },
    totalPath &&
      rules.stopsOnTotal && {
        reason: 'total_reached',
        when: `as many records were read as ${formatDotPath(totalPath, 'body')} says`,
      },
    rules.stopsOnEmpty && { reason: 'empty_page', when: 'a page has no records' },
    rules.stopsOnShort && { reason: 'short_page', when: 'a page has fewer records than were asked for' },
    ...paginator.ends,
    rules.detectsLoop &&
      paginator.onRepeatedPage === 'end' && {
        reason: 'cursor_repeated',
        when: 'the page leads to where it was asked for, and asked again holds the same records',
      },
    Number.isFinite(maxRecords) && { reason: 'max_records', when: `${maxRecords} records were read` },
    Number.isFinite(maxPages) && { reason: 'max_pages', when: `${maxPages} pages were read` },
  ]
  return stops.filter((stop) => stop !== undefined && stop !== false)
}
