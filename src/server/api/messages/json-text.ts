import { isUtf8 } from 'node:buffer'
import { Failure } from '../../../foundation/base/index.ts'
import { yieldToEventLoop } from '../../../foundation/fair/index.ts'
import {
  isJsonObject,
  JSON_VALUES_MAX,
  type Json,
  type JsonScan,
  JsonTextError,
  nestedTooDeep,
  parseJsonInSlices,
  parseScanned,
  scanJson,
} from '../../../foundation/json/index.ts'
import { LARGE_MESSAGE_BYTES } from '../limits.ts'

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

/** Rejects JSON with more than 50 000 values before another reader parses it. @throws Failure MALFORMED_BODY, REQUEST_TOO_LARGE */
export function assertFewValues(bytes: Buffer): void {
  scanBody(bytes)
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

/** The failure for a text that cannot be read. */
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

/** Members and elements of JSON, and itself; stops counting beyond `valuesMax`. */
export function countValues(json: Json, valuesMax: number): number {
  let count = 1
  if (Array.isArray(json))
    for (const item of json as readonly Json[]) {
      if (count > valuesMax) break
      count += countValues(item, valuesMax - count)
    }
  else if (isJsonObject(json))
    for (const key in json) {
      if (count > valuesMax) break
      count += countValues(json[key] ?? null, valuesMax - count)
    }
  return count
}

/** The failure for a message with more members and elements than are read. */
export function tooManyValues(): Failure {
  const message = `the request has more than ${JSON_VALUES_MAX} values (members and elements): send fewer at once`
  return new Failure('REQUEST_TOO_LARGE', message)
}

function malformed(message: string): Failure {
  return new Failure('MALFORMED_BODY', message)
}

/**
 * Describes the first syntax error of a JSON text (RFC 8259): `line 2, column 7: expected a value, met "}"`. `JSON.parse` has
 * the position of some errors only.
 *
 * Lines and columns count from 1, columns in UTF-16 units. One pass, after parsing has failed.
 *
 * @param text nested at most as deep as the call stack allows
 */
export function describeJsonError(text: string): string {
  const { at, expected } = new JsonScanner(text).firstError()
  const before = text.slice(0, at)
  const line = before.split('\n').length
  const column = at - before.lastIndexOf('\n')
  return `line ${line}, column ${column}: expected ${expected}, met ${characterAt(text, at)}`
}

const BLANKS = /[\t\n\r ]*/y
const SCALAR = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
/** Characters of a string up to an escape, its end, or an invalid character. */
const PLAIN_CHARACTERS = /[ !#-[\]-\uffff]*/y
/** Up to 1000 escapes: a string may have millions, and a backtracking engine remembers each. */
const ESCAPES = /(?:\\(?:["\\/bfnrt]|u[\dA-Fa-f]{4})){1,1000}/y

/** Scans JSON up to the first error. Its methods return false when there is one. */
class JsonScanner {
  readonly #text: string
  #at = 0
  #expected = 'nothing more'

  constructor(text: string) {
    this.#text = text
  }

  firstError(): { readonly at: number; readonly expected: string } {
    if (this.#value()) this.#skip(BLANKS)
    return { at: this.#at, expected: this.#expected }
  }

  #value(): boolean {
    this.#skip(BLANKS)
    switch (this.#text[this.#at]) {
      case '{':
        return this.#items('}', () => this.#member())
      case '[':
        return this.#items(']', () => this.#value())
      case '"':
        return this.#string()
      default:
        return this.#skip(SCALAR) || this.#fail('a value')
    }
  }

  #items(close: string, item: () => boolean): boolean {
    this.#at += 1
    if (this.#take(close)) return true
    do if (!item()) return false
    while (this.#take(','))
    return this.#take(close) || this.#fail(`"," or "${close}"`)
  }

  #member(): boolean {
    this.#skip(BLANKS)
    if (this.#text[this.#at] !== '"') return this.#fail('a key in double quotes')
    return this.#string() && (this.#take(':') || this.#fail('":"')) && this.#value()
  }

  #string(): boolean {
    this.#at += 1
    do this.#skip(PLAIN_CHARACTERS)
    while (this.#skip(ESCAPES))
    if (this.#text[this.#at] === '\\') return this.#fail('an escape of JSON')
    return this.#text[this.#at] === '"' ? this.#take('"') : this.#fail('a closing quote')
  }

  /** Skips blanks and the next character, if it is that one. */
  #take(character: string): boolean {
    this.#skip(BLANKS)
    if (this.#text[this.#at] !== character) return false
    this.#at += 1
    return true
  }

  #skip(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at
    if (!pattern.test(this.#text)) return false
    this.#at = pattern.lastIndex
    return true
  }

  #fail(expected: string): false {
    this.#expected = expected
    return false
  }
}

/** A character for a message; one without a glyph by its number. */
function characterAt(text: string, at: number): string {
  const code = text.codePointAt(at)
  if (code === undefined) return 'the end of the text'
  if (code > 0x20 && code < 0x7f) return `"${String.fromCodePoint(code)}"`
  return `U+${code.toString(16).toUpperCase().padStart(4, '0')}`
}
