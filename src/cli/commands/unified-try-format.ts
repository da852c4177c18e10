import type { TriedExchange, TriedMapping } from '../../engine/unified/index.ts'
import { getAtPath, isJsonObject, type Json, type JsonObject, parseDotPath } from '../../foundation/json/index.ts'
import type { NamedFixture } from './mapping-file.ts'
import { type ApplyTone, type Cell, type Column, pluralize, renderLine, renderTable, type Tone } from './run-format.ts'

type FieldTraces = NonNullable<TriedMapping['traces']>[number]

/** Widest name of a field in the table, and the least width of a value and of an expression, characters. */
const FIELD_WIDTH_MAX = 34
const VALUE_WIDTH_MIN = 16
/** Characters between columns. */
const COLUMN_GAP = 2
/** The start of a text in a table: longer ones would be cut by the terminal anyway. */
const TEXT_MAX = 1_000

/** Whether a case ran as its fixture says: the requests are those, all of them, and an answer was mapped or is an error of the provider. */
export function isAsRecorded({ exchanges, failure, unused }: TriedMapping): boolean {
  return failure === undefined && unused === 0 && exchanges.every(({ differences }) => differences.length === 0)
}

/** A case as lines: requests and answers, the first unified record with the expression of each field, warnings of all records. */
export function renderTriedCase(
  title: string,
  tried: TriedMapping,
  width: number,
  applyTone: ApplyTone,
): readonly string[] {
  const line = (text: string, tone: Tone = 'plain') => renderLine([{ text, tone }], width, applyTone)
  const records = recordsOf(tried)
  const [first] = records
  const [traces = []] = tried.traces ?? []
  return [
    line(title, 'strong'),
    ...tried.exchanges.flatMap((exchange) => exchangeLines(exchange).map(([text, tone]) => line(text, tone))),
    ...(tried.unused === 0 ? [] : [line(`  ${pluralize(tried.unused, 'exchange')} of the fixture not used`, 'bad')]),
    ...outcomeLines(tried).map(([text, tone]) => line(text, tone)),
    ...(first === undefined ? [] : recordTable(first, traces, width, applyTone)),
    ...(first === undefined ? [] : unsetLine(first, traces).map((text) => line(text, 'quiet'))),
    ...warningLines(tried, records).map(([text, tone]) => line(text, tone)),
  ]
}

type TonedText = readonly [text: string, tone: Tone]

function exchangeLines({ request, response, differences }: TriedExchange): readonly TonedText[] {
  return [
    [`  → ${request.method} ${request.url}`, 'plain'],
    ...(request.body === undefined ? [] : [[`    ${compact(request.body)}`, 'plain'] as const]),
    ...differences.map((difference): TonedText => [`    ${difference}`, 'bad']),
    ...(response === undefined ? [] : [answerLine(response)]),
  ]
}

function answerLine({ status, body }: NonNullable<TriedExchange['response']>): TonedText {
  return [`  ← ${status} ${body === undefined ? '' : compact(body)}`, 'quiet']
}

function outcomeLines({ outcome, failure }: TriedMapping): readonly TonedText[] {
  if (failure !== undefined)
    return [
      [`  ${failure.reason}: ${failure.publicMessage}`, 'bad'],
      ...failure.violations.map(({ field, description }): TonedText => [`    ${field} ${description}`, 'bad']),
    ]
  if (outcome === undefined) return []
  if (outcome.kind === 'rate_limited') return [[`  rate limited: wait ${outcome.retryAfterSeconds} s`, 'warning']]
  if (outcome.kind === 'upstream_error')
    return [[`  error of the provider, ${outcome.status}: ${outcome.message}`, 'warning']]
  const { page, result, isPartial } = outcome
  const next = page === undefined || page.nextCursor === null ? '' : ', and a next page'
  const what = Array.isArray(result) ? pluralize(result.length, 'record') : result === null ? 'no record' : 'one record'
  return [[`  = ${what}${next}${isPartial ? ', partial' : ''}`, 'good']]
}

/** A row of the table of a record. */
interface FieldRow {
  /** Dotted. */
  readonly field: string
  /** The unified value; absent: none. */
  readonly value: Json | undefined
  readonly error: string | undefined
  /** Empty for what the engine adds by itself. */
  readonly expression: string
  readonly isSandboxed: boolean
}

/** The first record as a table: each leaf of the field map with its unified value and its expression, then what the engine added. */
function recordTable(record: JsonObject, traces: FieldTraces, width: number, applyTone: ApplyTone): readonly string[] {
  const rows = rowsOf(record, traces)
  const fields = column(rows.map(({ field }) => [`    ${cut(field, FIELD_WIDTH_MAX)}`, 'plain']))
  const left = width - widthOf(fields) - 2 * COLUMN_GAP
  const valueMax = Math.max(VALUE_WIDTH_MIN, Math.floor(left / 2))
  const values = column(rows.map((row) => valueCell(row, valueMax)))
  const expressionMax = Math.max(VALUE_WIDTH_MIN, left - widthOf(values))
  const expressions = column(
    rows.map(({ expression, isSandboxed }) => [
      cut(`${isSandboxed ? '(sandbox) ' : ''}${expression.replaceAll(/\s+/g, ' ')}`, expressionMax),
      isSandboxed ? 'warning' : 'quiet',
    ]),
  )
  return renderTable([fields, values, expressions], width, applyTone)
}

function rowsOf(record: JsonObject, traces: FieldTraces): readonly FieldRow[] {
  const mapped = traces.map(({ field, expression, error, lane }) => ({
    field,
    value: getAtPath(record, parseDotPath(field)),
    error,
    expression,
    isSandboxed: lane === 'sandbox',
  }))
  const names = new Set(mapped.map(({ field }) => String(parseDotPath(field)[0])))
  const added = Object.entries(record)
    .filter(([name, value]) => !names.has(name) && name !== '_warnings' && value !== null)
    .map(([field, value]) => ({ field, value, error: undefined, expression: '', isSandboxed: false }))
  return [...mapped, ...added]
}

function valueCell({ value, error }: FieldRow, length: number): TonedText {
  if (error !== undefined) return [cut(error, length), 'bad']
  const isEmpty = value === undefined || value === null
  return [isEmpty ? '–' : cut(compact(value), length), isEmpty ? 'quiet' : 'good']
}

/** Fields of the schema that no expression sets. */
function unsetLine(record: JsonObject, traces: FieldTraces): readonly string[] {
  const names = new Set(traces.map(({ field }) => String(parseDotPath(field)[0])))
  const unset = Object.keys(record).filter((name) => record[name] === null && !names.has(name))
  return unset.length === 0 ? [] : [`    not mapped: ${unset.join(', ')}`]
}

function widthOf({ cells }: Column): number {
  return Math.max(0, ...cells.map(({ text }) => text.length))
}

function column(cells: readonly TonedText[]): Column {
  return { cells: cells.map(([text, tone]): Cell => ({ text, tone })), align: 'left', dropOrder: 0 }
}

function warningLines({ outcome }: TriedMapping, records: readonly JsonObject[]): readonly TonedText[] {
  const ofRequest = outcome?.kind === 'ok' ? outcome.warnings.map((warning): JsonObject => ({ ...warning })) : []
  const ofRecords = records.flatMap(({ _warnings: warnings }) => (Array.isArray(warnings) ? warnings : []))
  const texts = [...ofRequest, ...ofRecords.filter(isJsonObject)].map(
    ({ field, rule, message }) => `  warning: ${field} ${message} [${rule}]`,
  )
  const ignored = outcome?.kind === 'ok' ? outcome.ignoredFilters : []
  return [
    ...[...new Set(texts)].map((text): TonedText => [text, 'warning']),
    ...ignored.map(({ field, op, reason }): TonedText => [`  ignored: ${field} ${op} [${reason}]`, 'warning']),
  ]
}

/** A case for programs: everything, uncut. */
export function triedCaseToJson({ resource, name, fixture }: NamedFixture, tried: TriedMapping): JsonObject {
  const { exchanges, outcome, failure, traces = [], unused } = tried
  const shown = {
    resource,
    case: name,
    method: fixture.method,
    as_recorded: isAsRecorded(tried),
    exchanges,
    unused_exchanges: unused,
    outcome: failure === undefined ? outcome?.kind : 'failure',
    ...(failure === undefined
      ? {}
      : { failure: { reason: failure.reason, message: failure.publicMessage, violations: failure.violations } }),
    ...(outcome?.kind === 'upstream_error' ? { status: outcome.status, message: outcome.message } : {}),
    ...(outcome?.kind === 'ok'
      ? { result: outcome.result, ignored_filters: outcome.ignoredFilters, warnings: outcome.warnings }
      : {}),
    traces,
  }
  // Its values are JSON; interfaces have no index signature.
  return shown as unknown as JsonObject
}

function recordsOf({ outcome }: TriedMapping): readonly JsonObject[] {
  if (outcome?.kind !== 'ok' || outcome.result === null) return []
  return Array.isArray(outcome.result) ? outcome.result : [outcome.result as JsonObject]
}

function compact(value: Json): string {
  return cut(typeof value === 'string' && !value.includes('\n') ? value : JSON.stringify(value), TEXT_MAX)
}

function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`
}
