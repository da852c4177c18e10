import { formatQuantity } from '../../foundation/base/index.ts'
import { isJsonObject, type Json, JsonNumber, type JsonObject } from '../../foundation/json/index.ts'
import type { ToolResult } from './tool.ts'
import { errorToJson, errorToText, type ToolError } from './tool-error.ts'
import { withoutControls } from './tool-schema.ts'

/** Texts are shortened to these lengths, one after the other, until a result fits. */
const TEXT_LENGTHS = [4_000, 1_000, 200] as const
const DEPTH_MAX = 64

/** How a result holds a page of records: its key, and the argument that says how many. */
export interface PageNames {
  readonly records: string
  readonly limit: string
}

const PAGE_NAMES: PageNames = { records: 'records', limit: 'limit' }

/** The result of a call that failed. */
export function errorResult(error: ToolError): ToolResult {
  return {
    structured: errorToJson(error),
    text: withoutControls(errorToText(error)),
    isError: true,
    truncated: false,
  }
}

/**
 * The result of a call that succeeded: without control characters, and cut to the limit. Over it, long texts are shortened, then
 * records of a list are left out from the end, then fields; `truncated` and `advice` say so and what to ask for instead.
 *
 * @param bytesMax of the result as JSON
 * @param redact masks secrets, before anything is cut: the beginning of a secret would not be found
 */
export function successResult(
  result: JsonObject,
  bytesMax: number,
  page = PAGE_NAMES,
  redact: (clean: JsonObject) => JsonObject = (clean) => clean,
): ToolResult {
  const clean = redact(cleanJson(result, DEPTH_MAX) as JsonObject)
  const text = JSON.stringify(clean)
  if (Buffer.byteLength(text) <= bytesMax) return { structured: clean, text, isError: false, truncated: false }
  const structured = cut(clean, bytesMax, page)
  return { structured, text: JSON.stringify(structured), isError: false, truncated: true }
}

/** The fields of a record to keep, by name: the whole field, or what to keep of the fields within it. */
interface KeptFields extends Map<string, KeptFields | 'whole'> {}

/** The value with only those fields of each record; dotted paths, lists on the way are entered. The id stays. */
export function projectFields(value: Json, fields: readonly string[]): Json {
  const tree: KeptFields = new Map()
  for (const field of [...fields, 'id']) addPath(tree, field.split('.'))
  return project(value, tree)
}

function addPath(tree: KeptFields, path: readonly string[]): void {
  let at = tree
  for (const name of path.slice(0, -1)) {
    const known = at.get(name)
    if (known === 'whole') return
    const below: KeptFields = known ?? new Map()
    at.set(name, below)
    at = below
  }
  at.set(path[path.length - 1] ?? '', 'whole')
}

function project(value: Json, tree: KeptFields): Json {
  if (Array.isArray(value)) return value.map((each) => project(each, tree))
  if (!isJsonObject(value)) return value
  const entries = Object.entries(value).flatMap(([name, item]): [string, Json][] => {
    const kept = tree.get(name)
    if (kept === undefined) return []
    return [[name, kept === 'whole' ? item : project(item, kept)]]
  })
  return Object.fromEntries(entries)
}

function cut(result: JsonObject, bytesMax: number, page: PageNames): JsonObject {
  const shortest = TEXT_LENGTHS[TEXT_LENGTHS.length - 1] ?? 0
  for (const length of TEXT_LENGTHS) {
    const shortened = shortenTexts(result, length) as JsonObject
    const marked = mark(shortened, `Texts are cut at ${length} characters: ask with fields for what you need.`)
    if (bytesOf(marked) <= bytesMax) return marked
    // A list loses records before its texts become unreadable.
    if (length < TEXT_LENGTHS[0] && Array.isArray(result[page.records])) {
      const fewer = leaveOutRecords(shortened, bytesMax, page)
      if (fewer !== undefined) return fewer
    }
  }
  return leaveOutFields(shortenTexts(result, shortest) as JsonObject, bytesMax)
}

/** The first records that fit; `undefined` when not even one does. */
function leaveOutRecords(result: JsonObject, bytesMax: number, page: PageNames): JsonObject | undefined {
  const listed = result[page.records]
  const records = Array.isArray(listed) ? (listed as readonly Json[]) : []
  const marked = (count: number) =>
    mark(
      { ...result, [page.records]: records.slice(0, count) },
      `The last ${formatQuantity(records.length - count, 'record')} of this page of ${records.length} are left out: ask ` +
        `again from the first page with ${page.limit} ${Math.max(count, 1)}, or with fields for what you need.`,
    )
  let room = bytesMax - bytesOf(marked(0))
  let fitting = 0
  for (const record of records) {
    room -= bytesOf(record) + 1
    if (room < 0) break
    fitting += 1
  }
  return fitting === 0 ? undefined : marked(fitting)
}

/** The first fields that fit. */
function leaveOutFields(result: JsonObject, bytesMax: number): JsonObject {
  const advice = 'Fields are left out: ask with fields for what you need.'
  let room = bytesMax - bytesOf(mark({}, advice))
  const fitting = Object.entries(result).filter(([name, value]) => {
    const bytes = bytesOf({ [name]: value })
    if (bytes > room) return false
    room -= bytes
    return true
  })
  return mark(Object.fromEntries(fitting), advice)
}

function mark(result: JsonObject, advice: string): JsonObject {
  return { ...result, truncated: true, advice }
}

function bytesOf(value: Json): number {
  return Buffer.byteLength(JSON.stringify(value))
}

function shortenTexts(value: Json, lengthMax: number): Json {
  return mapTexts(value, DEPTH_MAX, (text) => (text.length <= lengthMax ? text : `${text.slice(0, lengthMax)}…`))
}

/** Text of third parties is data: nothing in it may hide from a reader or move a cursor. */
function cleanJson(value: Json, depth: number): Json {
  return mapTexts(value, depth, withoutControls)
}

/** Applies a change to every text and name; what is nested deeper is left out. */
function mapTexts(value: Json, depth: number, change: (text: string) => string): Json {
  if (typeof value === 'string') return change(value)
  if (typeof value !== 'object' || value === null || value instanceof JsonNumber) return value
  if (depth === 0) return null
  if (Array.isArray(value)) return value.map((each) => mapTexts(each, depth - 1, change))
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [change(name), mapTexts(item, depth - 1, change)]),
  )
}
