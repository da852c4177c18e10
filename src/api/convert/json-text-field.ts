import {
  findUnstorable,
  isJsonObject,
  JSON_VALUES_MAX,
  type JsonObject,
  JsonTextError,
  parseScanned,
  scanJson,
} from '../../base/index.ts'
import { isStorable } from '../message/storable.ts'
import type { Finding } from '../service.ts'

/** Deepest nesting of a text in a field, as of a request body. */
const NESTING_MAX = 100

/** What is wrong with a field that holds a JSON object as text; nothing for an empty one. */
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
