import { isUtf8 } from 'node:buffer'
import { Failure, type Json } from '../../base/index.ts'
import { describeJsonError } from './json-error.ts'

/** Deepest nesting of a JSON text; protobuf's own readers stop there too. */
const NESTING_MAX = 100

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a

/**
 * Parses a request body strictly: UTF-8, JSON without repeated keys, nested at most 100 deep. An empty body is `{}`.
 *
 * Keys are counted instead of compared: a repeated key leaves the text with more members than the parsed value.
 *
 * @throws Failure MALFORMED_BODY
 */
export function parseJson(bytes: Buffer): Json {
  if (bytes.length === 0) return {}
  if (!isUtf8(bytes)) throw malformed('the body is not valid UTF-8')
  const { members, nesting } = measure(bytes)
  if (nesting > NESTING_MAX) throw malformed(`the JSON is nested deeper than ${NESTING_MAX} levels`)
  const value = parseText(bytes.toString('utf8'))
  if (countMembers(value) !== members) throw malformed('the JSON gives the same key twice in one object')
  return value
}

function parseText(text: string): Json {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new Failure('MALFORMED_BODY', `the body is not valid JSON: ${describeJsonError(text)}`, { cause })
  }
}

/** Members of all objects and the deepest nesting, read off the text; exact for valid JSON, harmless for any other. */
function measure(bytes: Buffer): { readonly members: number; readonly nesting: number } {
  let members = 0
  let depth = 0
  let nesting = 0
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at]
    if (byte === QUOTE) at = endOfString(bytes, at)
    else if (byte === COLON) members += 1
    else if (byte === 0x7b || byte === 0x5b) {
      depth += 1
      if (depth > nesting) nesting = depth
    } else if (byte === 0x7d || byte === 0x5d) depth -= 1
  }
  return { members, nesting }
}

/** The closing quote of the string that opens at `start`, or the end of the text. */
function endOfString(bytes: Buffer, start: number): number {
  let at = start + 1
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1
  return at
}

function countMembers(value: Json): number {
  if (typeof value !== 'object' || value === null) return 0
  const items = Array.isArray(value) ? value : Object.values(value)
  let count = Array.isArray(value) ? 0 : items.length
  for (const item of items) if (typeof item === 'object') count += countMembers(item)
  return count
}

function malformed(message: string): Failure {
  return new Failure('MALFORMED_BODY', message)
}
