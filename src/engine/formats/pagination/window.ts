import { z } from 'zod'
import { DAY_MS, Failure, HOUR_MS, parseTime } from '../../../foundation/base/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../foundation/json/index.ts'
import { compileTemplate, renderText, renderValue } from '../../expressions/template.ts'
import { type FormatChoice, formatUnion, getFormat, withSchema } from '../format.ts'
import { nameText, refineWith, templateText } from '../schema-types.ts'
import { cursor } from './cursor.ts'
import { dynamic } from './dynamic.ts'
import { linkHeader } from './link-header.ts'
import { decideNextStep } from './listing.ts'
import { offset, page } from './page-and-offset.ts'
import {
  integerAt,
  type ListingContext,
  type ListingPage,
  type ListingStep,
  type PageParams,
  type Pagination,
  type PaginationFormat,
  type PaginationRules,
  type Paginator,
  textAt,
} from './paginator.ts'
import { range } from './range.ts'
import { commonKeys, compileRules, refineParamNames } from './rules.ts'

/** The formats that may page inside an interval of `window`. */
export const INNER_PAGINATION_FORMATS: readonly PaginationFormat[] = [page, offset, cursor, linkHeader, range, dynamic]

/** An ISO 8601 duration; years and months are calendar units, all others fixed lengths in UTC. */
export interface IsoDuration {
  readonly months: number
  readonly ms: number
}

const DURATION =
  /^P(?=.)(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/

/** The duration, `undefined` when the text is not one or is zero. */
export function parseIsoDuration(text: string): IsoDuration | undefined {
  const match = DURATION.exec(text)
  if (match === null) return undefined
  const [years, months, weeks, days, hours, minutes, seconds] = match.slice(1).map((part) => Number(part ?? 0))
  const ms =
    ((weeks ?? 0) * 7 + (days ?? 0)) * DAY_MS + (hours ?? 0) * HOUR_MS + (minutes ?? 0) * 60_000 + (seconds ?? 0) * 1000
  const duration = { months: (years ?? 0) * 12 + (months ?? 0), ms }
  return duration.months === 0 && duration.ms === 0 ? undefined : duration
}

/** Adds a duration to a date. A day that the month lacks becomes its last day, as in 31 January plus a month. */
function addIsoDuration(date: Date, { months, ms }: IsoDuration): Date {
  if (months === 0) return new Date(date.getTime() + ms)
  const shifted = new Date(date)
  shifted.setUTCDate(1)
  shifted.setUTCMonth(shifted.getUTCMonth() + months)
  const lastDay = new Date(Date.UTC(shifted.getUTCFullYear(), shifted.getUTCMonth() + 1, 0)).getUTCDate()
  shifted.setUTCDate(Math.min(date.getUTCDate(), lastDay))
  return new Date(shifted.getTime() + ms)
}

const config = z
  .strictObject({
    ...commonKeys,
    from_key: nameText().describe('Parameter for the begin of the interval, inclusive.'),
    to_key: nameText().describe('Parameter for its end.'),
    step: z
      .string()
      .max(64)
      .superRefine(refineWith(findDurationProblem, 'duration'))
      .describe('Length of an interval as ISO 8601 duration, for example P1D or P1M.'),
    start: templateText().describe(
      'Begin of the first interval, for example `{{previous_run_date?:2024-01-01T00:00:00Z}}`.',
    ),
    end: templateText()
      .optional()
      .describe(
        'End of the last interval. Default, also where its placeholder has no value: the moment the listing starts.',
      ),
    value_format: z
      .enum(['iso', 'date', 'epoch_seconds', 'epoch_milliseconds'])
      .default('iso')
      .describe('How the interval is written.'),
    pagination: formatUnion('InnerPagination', INNER_PAGINATION_FORMATS)
      .optional()
      .describe('Paging inside an interval. Default: one page each.'),
  })
  .superRefine(refineParamNames(['from_key', 'to_key', 'limit_key']))

type WindowConfig = z.output<typeof config>

/** `window`: pages by time intervals. */
export const window: PaginationFormat = {
  format: 'window',
  summary: 'Asks for one time interval after the other, each with paging of its own where `pagination` is given.',
  config,
  compile: withSchema(config, (parsed) => {
    const inner = parsed.pagination === undefined ? undefined : compileInner(parsed.pagination)
    return { format: 'window', rules: windowRules(parsed, inner), paginator: windowPaginator(parsed, inner) }
  }),
}

function compileInner({ format, config: innerConfig }: FormatChoice): Pagination {
  return getFormat(INNER_PAGINATION_FORMATS, format).compile(innerConfig)
}

/** Page size and origins of the inner pagination apply to the requests; its stop rules end an interval only. */
function windowRules(parsed: WindowConfig, inner: Pagination | undefined): PaginationRules {
  const own = compileRules(parsed, false)
  if (inner === undefined) return own
  return {
    ...own,
    limit: own.limit ?? inner.rules.limit,
    limitKey: own.limitKey ?? inner.rules.limitKey,
    limitMax: Math.min(own.limitMax, inner.rules.limitMax),
    allowedOrigins: [...own.allowedOrigins, ...inner.rules.allowedOrigins],
    allowedPaths: [...own.allowedPaths, ...inner.rules.allowedPaths],
  }
}

function windowPaginator(parsed: WindowConfig, inner: Pagination | undefined): Paginator {
  const step = parseIsoDuration(parsed.step) ?? { months: 0, ms: 1 }
  const start = compileTemplate(parsed.start)
  const end = parsed.end === undefined ? undefined : compileTemplate(parsed.end)
  return {
    ends: [{ reason: 'window_end', when: 'the last interval has been read' }],
    start: async (context) => {
      const from = parseDate(renderText(start, context.scope))
      const given = end === undefined ? undefined : renderValue(end, context.scope)
      const last = given === undefined || given === null ? context.now() : parseDate(given)
      return interval(from, last, step, await innerStart(inner, context))
    },
    ...(inner?.paginator.onRepeatedPage === undefined ? {} : { onRepeatedPage: inner.paginator.onRepeatedPage }),
    requestKey: ({ from = null, to = null, inner: within = {} }, page) => ({
      from,
      to,
      inner: isJsonObject(within) ? (inner?.paginator.requestKey?.(within, page) ?? within) : {},
    }),
    request: (position, limit) => windowRequest(parsed, inner, position, limit),
    next: async (page, position, context) => {
      const within = await innerStep(inner, page, position, context)
      if (within !== undefined) return { kind: 'next', position: within }
      const from = new Date(textAt(position, 'to'))
      const last = new Date(textAt(position, 'end'))
      if (from >= last) return { kind: 'end', reason: 'window_end' }
      return { kind: 'next', position: interval(from, last, step, await innerStart(inner, context)) }
    },
  }
}

function interval(from: Date, last: Date, step: IsoDuration, inner: JsonObject): JsonObject {
  const to = addIsoDuration(from, step)
  const bounded = to < last ? to : last
  return { from: from.toISOString(), to: bounded.toISOString(), end: last.toISOString(), inner, pages: 0, received: 0 }
}

async function innerStart(inner: Pagination | undefined, context: ListingContext): Promise<JsonObject> {
  return inner === undefined ? {} : inner.paginator.start(context, undefined)
}

/** The position of the next page inside the interval, `undefined` when the interval is done. */
async function innerStep(
  inner: Pagination | undefined,
  page: ListingPage,
  position: JsonObject,
  context: ListingContext,
): Promise<JsonObject | undefined> {
  if (inner === undefined) return undefined
  const counted = {
    position: innerPosition(position),
    pages: integerAt(position, 'pages') + 1,
    received: integerAt(position, 'received') + (page.isRepeated ? 0 : page.received.length),
  }
  const step: ListingStep = await decideNextStep(inner, counted, page, context)
  return step.kind === 'end'
    ? undefined
    : { ...position, pages: counted.pages, received: counted.received, inner: step.position }
}

function windowRequest(
  parsed: WindowConfig,
  inner: Pagination | undefined,
  position: JsonObject,
  limit: number | undefined,
): PageParams {
  const within = inner?.paginator.request(innerPosition(position), limit) ?? { params: [], values: {} }
  const from = formatDate(textAt(position, 'from'), parsed.value_format)
  const to = formatDate(textAt(position, 'to'), parsed.value_format)
  const bounds = [
    { location: parsed.in, key: parsed.from_key, value: from },
    { location: parsed.in, key: parsed.to_key, value: to },
  ]
  return { ...within, params: [...bounds, ...within.params], values: { ...within.values, from, to } }
}

function innerPosition(position: JsonObject): JsonObject {
  return isJsonObject(position.inner) ? position.inner : {}
}

function parseDate(value: Json): Date {
  const moment = new Date(parseTime(String(value)))
  if (Number.isNaN(moment.getTime()))
    throw new Failure('PLACEHOLDER_UNRESOLVED', 'start and end of a window must be dates such as 2024-01-31T00:00:00Z')
  return moment
}

function formatDate(iso: string, format: WindowConfig['value_format']): Json {
  switch (format) {
    case 'iso':
      return iso
    case 'date':
      return iso.slice(0, 10)
    case 'epoch_seconds':
      return Math.floor(new Date(iso).getTime() / 1000)
    case 'epoch_milliseconds':
      return new Date(iso).getTime()
  }
}

function findDurationProblem(text: string): string | undefined {
  return parseIsoDuration(text) === undefined ? 'must be an ISO 8601 duration such as P1D, PT6H or P1M' : undefined
}
