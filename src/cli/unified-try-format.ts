import { isJsonObject, type Json, type JsonObject } from '../base/index.ts'
import type { TriedExchange, TriedMapping } from '../unified/index.ts'
import type { NamedFixture } from './mapping-file.ts'
import { type ApplyTone, type Cell, type Column, pluralize, renderLine, renderTable, type Tone } from './run-format.ts'

type FieldTraces = NonNullable<TriedMapping['traces']>[number]

/** Widest name of a field in the table, and the least that a value and an expression get, characters. */
const FIELD_WIDTH_MAX = 34
const VALUE_WIDTH_MIN = 16
/** Lines of a record that are shown; `--json` shows all. */
const RECORD_LINES_MAX = 60
/** The start of a text in a table: longer ones would be cut by the terminal anyway. */
const TEXT_MAX = 1_000

/** Whether a case ran as its fixture says: the requests are those, all of them, and an answer was mapped or is an error of the provider. */
export function isAsRecorded({ exchanges, failure, unused }: TriedMapping): boolean {
  return failure === undefined && unused === 0 && exchanges.every(({ differences }) => differences.length === 0)
}

/** A case as lines: requests and answers, the unified result, how the fields of the first record came about, warnings. */
export function renderTriedCase(
  title: string,
  tried: TriedMapping,
  width: number,
  applyTone: ApplyTone,
): readonly string[] {
  const line = (text: string, tone: Tone = 'plain') => renderLine([{ text, tone }], width, applyTone)
  const records = recordsOf(tried)
  return [
    line(title, 'strong'),
    ...tried.exchanges.flatMap((exchange) => exchangeLines(exchange).map(([text, tone]) => line(text, tone))),
    ...(tried.unused === 0 ? [] : [line(`  ${pluralize(tried.unused, 'exchange')} of the fixture not used`, 'bad')]),
    ...outcomeLines(tried).map(([text, tone]) => line(text, tone)),
    ...recordLines(records).map((text) => line(text)),
    ...traceTable(tried.traces?.[0] ?? [], width, applyTone),
    ...warningLines(tried, records).map(([text, tone]) => line(text, tone)),
  ]
}

type TonedText = readonly [text: string, tone: Tone]

function exchangeLines({ request, response, differences }: TriedExchange): readonly TonedText[] {
  return [
    [`  → ${request.method} ${request.url}`, 'plain'],
    ...(request.body === undefined ? [] : [[`    ${compact(request.body)}`, 'plain'] as const]),
    ...differences.map((difference): TonedText => [`    ${difference}`, 'bad']),
    [`  ← ${response.status} ${response.body === undefined ? '' : compact(response.body)}`, 'quiet'],
  ]
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

/** The first record without what is null. */
function recordLines([first]: readonly JsonObject[]): readonly string[] {
  if (first === undefined) return []
  const { _warnings: _, ...record } = first
  const set = Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null))
  const lines = JSON.stringify(set, undefined, 2).split('\n')
  const cut = lines.length > RECORD_LINES_MAX ? [...lines.slice(0, RECORD_LINES_MAX), '…'] : lines
  const empty = Object.keys(record).filter((name) => record[name] === null)
  return [...cut.map((text) => `    ${text}`), ...(empty.length === 0 ? [] : [`    null: ${empty.join(', ')}`])]
}

/** Field, value and expression of each leaf of the field map. */
function traceTable(traces: FieldTraces, width: number, applyTone: ApplyTone): readonly string[] {
  if (traces.length === 0) return []
  const fields = column(traces.map(({ field }) => [`  ${cut(field, FIELD_WIDTH_MAX)}`, 'plain']))
  const fieldWidth = Math.max(...fields.cells.map(({ text }) => text.length))
  const valueWidth = Math.max(VALUE_WIDTH_MIN, Math.floor((width - fieldWidth) * 0.4))
  const values = column(
    traces.map(({ value, error }) =>
      error === undefined
        ? [cut(value === undefined ? '–' : compact(value), valueWidth), toneOf(value)]
        : [cut(error, valueWidth), 'bad'],
    ),
  )
  const expressions = column(
    traces.map(({ expression, lane }) => [
      `${lane === 'sandbox' ? '(sandbox) ' : ''}${cut(expression.replaceAll(/\s+/g, ' '), TEXT_MAX)}`,
      lane === 'sandbox' ? 'warning' : 'quiet',
    ]),
  )
  return renderTable([fields, values, expressions], width, applyTone)
}

function toneOf(value: Json | undefined): Tone {
  return value === undefined || value === null ? 'quiet' : 'good'
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
  return JSON.parse(JSON.stringify(shown)) as JsonObject
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
