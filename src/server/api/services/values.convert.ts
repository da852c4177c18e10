import { type Timestamp, timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt'
import {
  findUnstorable,
  isJsonObject,
  JSON_VALUES_MAX,
  type JsonObject,
  JsonTextError,
  parseScanned,
  scanJson,
} from '../../../foundation/json/index.ts'
import { isStorable } from '../messages/storable.ts'
import type { Finding } from '../operation.ts'

/** The version in the etag of a request; absent without an etag, when every version matches. */
export function versionFrom(etag: string | undefined): number | undefined {
  return etag === undefined ? undefined : parseEtag(etag)
}

/**
 * A string of a closed set, as its type; absent stays absent.
 *
 * The rules of the contract reject every other string: one that arrives here means that contract and code differ, a bug.
 */
export function parseEnum<Word extends string>(words: readonly Word[], text: string): Word
export function parseEnum<Word extends string>(words: readonly Word[], text: string | undefined): Word | undefined
export function parseEnum<Word extends string>(words: readonly Word[], text: string | undefined): Word | undefined {
  if (text === undefined) return undefined
  const word = words.find((known) => known === text)
  if (word === undefined) throw new Error(`the contract let "${text}" through, which is none of ${words.join(', ')}`)
  return word
}

/** A date as a timestamp; absent stays absent. */
export function timestampFrom(date: Date): Timestamp
export function timestampFrom(date: Date | null | undefined): Timestamp | undefined
export function timestampFrom(date: Date | null | undefined): Timestamp | undefined {
  return date ? timestampFromDate(date) : undefined
}

/** A timestamp as a date, with milliseconds; absent stays absent. */
export function dateFrom(timestamp: Timestamp | undefined): Date | undefined {
  return timestamp && timestampDate(timestamp)
}

/** Deepest nesting of a text in a field, as of a request body. */
const NESTING_MAX = 100

/** Findings about a field with a JSON object as text; none for an empty one. */
export function findTextProblems(field: string, text: string): readonly Finding[] {
  if (text === '') return []
  const read = readText(text)
  if (!('object' in read)) return [{ field, description: read.problem, rule: 'json_text' }]
  if (isStorable(read.object, 0)) return []
  return findUnstorable(read.object, field).map(({ path, ...rest }) => ({ field: path, ...rest }))
}

/** The object in a field that `findPlaceholderProblems` has nothing to say about; `undefined` for an empty one. */
export function objectInText(text: string): JsonObject | undefined {
  const read = text === '' ? undefined : readText(text)
  return read !== undefined && 'object' in read ? read.object : undefined
}

function readText(text: string): { readonly object: JsonObject } | { readonly problem: string } {
  try {
    const scan = scanJson(text, JSON_VALUES_MAX)
    if (scan.values > JSON_VALUES_MAX) return { problem: `must have at most ${JSON_VALUES_MAX} values` }
    const value = parseScanned(text, scan, NESTING_MAX)
    return isJsonObject(value) ? { object: value } : { problem: 'must be the text of a JSON object' }
  } catch (error) {
    if (error instanceof JsonTextError) return { problem: error.message }
    throw error
  }
}

/** Versions start at 1, so this one matches no row. */
const UNMATCHED_VERSION = 0
const ETAG = /^(?:"v(\d{1,9})"|v(\d{1,9}))$/

/** The etag of a row's version, an entity tag as RFC 9110 has it, quotes included: `"v3"`. */
export function toEtag(version: number): string {
  return `"v${version}"`
}

/**
 * The version of an etag, with or without quotes. Any other text gives a version that no row has, so that it does not match.
 */
export function parseEtag(etag: string): number {
  const match = ETAG.exec(etag)
  return match === null ? UNMATCHED_VERSION : Number(match[1] ?? match[2])
}
