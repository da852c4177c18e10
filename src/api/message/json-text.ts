import { isUtf8 } from 'node:buffer'
import {
  Failure,
  isJsonObject,
  JSON_VALUES_MAX,
  type Json,
  type JsonScan,
  JsonTextError,
  nestedTooDeep,
  parseJsonInSlices,
  parseScanned,
  scanJson,
  yieldToEventLoop,
} from '../../base/index.ts'
import { LARGE_MESSAGE_BYTES } from '../limits.ts'
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
export function parseRequestJson(bytes: Buffer): Json {
  if (bytes.length === 0) return {}
  const { text, scan } = scanBody(bytes)
  try {
    return requireUniqueKeys(parseScanned(text, scan, NESTING_MAX), scan)
  } catch (cause) {
    throw unreadable(text, cause)
  }
}

/** `parseRequestJson`, in slices when the body is large. @throws Failure as it does */
export async function parseRequestJsonInSlices(bytes: Buffer): Promise<Json> {
  if (bytes.length <= LARGE_MESSAGE_BYTES) return parseRequestJson(bytes)
  const { text, scan } = scanBody(bytes)
  try {
    if (scan.nesting > NESTING_MAX) throw nestedTooDeep(NESTING_MAX)
    const value = await parseJsonInSlices(text)
    await yieldToEventLoop()
    return requireUniqueKeys(value, scan)
  } catch (cause) {
    throw unreadable(text, cause)
  }
}

function scanBody(bytes: Buffer): { readonly text: string; readonly scan: JsonScan } {
  if (!isUtf8(bytes)) throw malformed('the body is not valid UTF-8')
  const text = bytes.toString('utf8')
  const scan = scanJson(text, JSON_VALUES_MAX)
  if (scan.values > JSON_VALUES_MAX) throw tooManyValues()
  return { text, scan }
}

function requireUniqueKeys(value: Json, { members }: JsonScan): Json {
  if (countMembers(value) !== members) throw malformed('the JSON gives the same key twice in one object')
  return value
}

/** @param cause of why the text was not read */
function unreadable(text: string, cause: unknown): unknown {
  if (!(cause instanceof JsonTextError)) return cause
  const problem = cause.kind === 'syntax' ? `${cause.message}: ${describeJsonError(text)}` : cause.message
  return new Failure('MALFORMED_BODY', `the body ${problem}`, { cause })
}

/** Members of all objects in a value that was just parsed. `for in` takes a third of the time of `Object.values`. */
function countMembers(value: Json): number {
  let count = 0
  if (Array.isArray(value)) for (const item of value as readonly Json[]) count += countMembers(item)
  else if (isJsonObject(value))
    for (const key in value) {
      const item = value[key]
      count += typeof item === 'object' ? 1 + countMembers(item) : 1
    }
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
