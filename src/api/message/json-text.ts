import { isUtf8 } from 'node:buffer'
import {
  Failure,
  isJsonObject,
  JSON_VALUES_MAX,
  type Json,
  type JsonScan,
  JsonTextError,
  parseScanned,
  scanJson,
} from '../../base/index.ts'
import { describeJsonError } from './json-error.ts'

/** Deepest nesting of a JSON text; protobuf's own readers stop there too. */
const NESTING_MAX = 100

/**
 * Parses a request body strictly: UTF-8, JSON without repeated keys, nested at most 100 deep, with at most 50 000 values. An
 * empty body is `{}`.
 *
 * Keys are counted instead of compared: a repeated key leaves the text with more members than the parsed value.
 *
 * @throws Failure MALFORMED_BODY, REQUEST_TOO_LARGE
 */
export function parseJson(bytes: Buffer): Json {
  if (bytes.length === 0) return {}
  if (!isUtf8(bytes)) throw malformed('the body is not valid UTF-8')
  const text = bytes.toString('utf8')
  const scan = scanJson(text)
  if (scan.values > JSON_VALUES_MAX) throw tooManyValues()
  const value = parseText(text, scan)
  if (countMembers(value) !== scan.members) throw malformed('the JSON gives the same key twice in one object')
  return value
}

function parseText(text: string, scan: JsonScan): Json {
  try {
    return parseScanned(text, scan, NESTING_MAX)
  } catch (cause) {
    if (!(cause instanceof JsonTextError)) throw cause
    const problem = cause.kind === 'syntax' ? `${cause.message}: ${describeJsonError(text)}` : cause.message
    throw new Failure('MALFORMED_BODY', `the body ${problem}`, { cause })
  }
}

function countMembers(value: Json): number {
  const isObject = isJsonObject(value)
  if (!isObject && !Array.isArray(value)) return 0
  const items: readonly Json[] = Object.values(value)
  let count = isObject ? items.length : 0
  for (const item of items) if (typeof item === 'object') count += countMembers(item)
  return count
}

/** A message with more members and elements than are read. */
export function tooManyValues(): Failure {
  const message = `the request has more than ${JSON_VALUES_MAX} values (members and elements): send fewer at once`
  return new Failure('REQUEST_TOO_LARGE', message)
}

function malformed(message: string): Failure {
  return new Failure('MALFORMED_BODY', message)
}
