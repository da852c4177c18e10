import { randomUUID } from 'node:crypto'
import type { Json } from './json.ts'
import { isInexact, JsonNumber } from './json-number.ts'

/**
 * Deepest nesting of a JSON text. Code that walks or writes a value recurses: this depth is far above real documents and
 * far below the stack's limit.
 */
export const JSON_NESTING_MAX = 256

/** Most values of a JSON text that a client sends, as `JsonScan.values` counts them; each costs microseconds later. */
export const JSON_VALUES_MAX = 50_000

/** The text is not JSON that can be read. The message begins with a verb and holds nothing of the text. */
export class JsonTextError extends Error {
  /** `size`: a part of it is larger than is read. */
  readonly kind: 'syntax' | 'nesting' | 'size'

  constructor(kind: JsonTextError['kind'], message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'JsonTextError'
    this.kind = kind
  }
}

/** What one linear pass over a JSON text finds; exact for valid JSON, harmless for any other text. */
export interface JsonScan {
  /** Deepest nesting of objects and lists. */
  readonly nesting: number
  /** Members of all objects. */
  readonly members: number
  /** Values of any kind: members, elements and the text itself; an empty object or list counts twice. */
  readonly values: number
  /** Start and end of each number that a double would write back differently, one after the other. */
  readonly inexact: readonly number[]
}

const QUOTE = 0x22
const PLUS = 0x2b
const COMMA = 0x2c
const MINUS = 0x2d
const DOT = 0x2e
const ZERO = 0x30
const NINE = 0x39
const COLON = 0x3a
const UPPER_E = 0x45
const OPEN_LIST = 0x5b
const BACKSLASH = 0x5c
const CLOSE_LIST = 0x5d
const LOWER_E = 0x65
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** A double holds every decimal of 15 digits. */
const EXACT_DIGITS = 15
/** `0.000001` is the last that is written without an exponent. */
const SMALL_PREFIX = '0.000000'

/**
 * Parses JSON as others wrote it. Numbers that a double would change become `JsonNumber`; writing the value with
 * `JSON.stringify` gives each of them back as it was.
 *
 * @param nestingMax deepest nesting that is read
 * @throws JsonTextError
 */
export function parseJson(text: string, nestingMax = JSON_NESTING_MAX): Json {
  return parseScanned(text, scanJson(text), nestingMax)
}

/** `parseJson` for a text that was scanned. @throws JsonTextError */
export function parseScanned(text: string, scan: JsonScan, nestingMax: number): Json {
  if (scan.nesting > nestingMax) throw nestedTooDeep(nestingMax)
  try {
    return scan.inexact.length === 0 ? JSON.parse(text) : parseExactly(text, scan.inexact)
  } catch (cause) {
    throw notJson(cause)
  }
}

/** @param nestingMax deepest nesting that is read */
export function nestedTooDeep(nestingMax: number): JsonTextError {
  return new JsonTextError('nesting', `is nested deeper than ${nestingMax} levels`)
}

/** @param cause what the parser says */
export function notJson(cause?: unknown): JsonTextError {
  return new JsonTextError('syntax', 'is not valid JSON', cause)
}

/** Prefix of the strings that replace numbers during a parse; random, so that no document contains it. */
const PLACEHOLDER = randomUUID()
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/
const COLON_NEXT = /\s*:/y

/**
 * Parses with a placeholder string for each of the given numbers and replaces the placeholders afterwards: five times
 * faster than a reviver, which is called for every value.
 *
 * Only well-formed numbers that are not keys are replaced, so that a text that is not JSON does not become JSON: a string is
 * allowed wherever a number is, and otherwise only as a key.
 */
function parseExactly(text: string, inexact: readonly number[]): Json {
  const pieces: string[] = []
  const numbers: JsonNumber[] = []
  let copied = 0
  for (let index = 0; index < inexact.length; index += 2) {
    const [start, end] = [inexact[index] ?? 0, inexact[index + 1] ?? 0]
    const number = text.slice(start, end)
    COLON_NEXT.lastIndex = end
    if (!NUMBER.test(number) || COLON_NEXT.test(text)) return JSON.parse(text) // no JSON: throws
    pieces.push(text.slice(copied, start), `"${PLACEHOLDER}${numbers.length}"`)
    numbers.push(new JsonNumber(number))
    copied = end
  }
  return withNumbers(JSON.parse(`${pieces.join('')}${text.slice(copied)}`), numbers) as Json
}

/**
 * Replaces the placeholders by their numbers, in place, in a value that was just parsed. Plain loops take a third of the time
 * of a copy.
 */
function withNumbers(value: unknown, numbers: readonly JsonNumber[]): unknown {
  if (typeof value === 'string')
    return value.startsWith(PLACEHOLDER) ? numbers[Number(value.slice(PLACEHOLDER.length))] : value
  if (Array.isArray(value))
    for (let index = 0; index < value.length; index += 1) {
      const item = withNumbers(value[index], numbers)
      if (item !== value[index]) value[index] = item
    }
  else if (isRecord(value))
    for (const key in value) {
      const item = withNumbers(value[key], numbers)
      if (item !== value[key]) value[key] = item
    }
  return value
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

/** Looks at every character once, outside of strings. @param valuesMax a text with more values is scanned no further */
export function scanJson(text: string, valuesMax = Number.POSITIVE_INFINITY): JsonScan {
  let depth = 0
  let nesting = 0
  let members = 0
  let values = 1
  const inexact: number[] = []
  for (let at = 0; at < text.length && values <= valuesMax; at += 1) {
    const unit = text.charCodeAt(at)
    if (unit === QUOTE) at = endOfString(text, at)
    else if (unit === COLON) members += 1
    else if (unit === COMMA) values += 1
    else if (unit === OPEN_OBJECT || unit === OPEN_LIST) {
      values += 1
      depth += 1
      if (depth > nesting) nesting = depth
    } else if (unit === CLOSE_OBJECT || unit === CLOSE_LIST) depth -= 1
    else if (unit === MINUS || (unit >= ZERO && unit <= NINE)) {
      const end = endOfNumber(text, at)
      if (mayLose(text, at, end) && isInexactText(text.slice(at, end))) inexact.push(at, end)
      at = end - 1
    }
  }
  return { nesting, members, values, inexact }
}

/** The closing quote of the string that opens at `start`, or the end of the text. A quote after an odd run of backslashes is escaped. */
export function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let run = at
    while (text.charCodeAt(run - 1) === BACKSLASH) run -= 1
    if ((at - run) % 2 === 0) return at
  }
  return text.length
}

function endOfNumber(text: string, start: number): number {
  let at = start + 1
  while (at < text.length && isOfNumber(text.charCodeAt(at))) at += 1
  return at
}

function isOfNumber(unit: number): boolean {
  return (
    (unit >= ZERO && unit <= NINE) ||
    unit === DOT ||
    unit === PLUS ||
    unit === MINUS ||
    unit === LOWER_E ||
    unit === UPPER_E
  )
}

function isInexactText(number: string): boolean {
  return isInexact(Number(number), number)
}

/** Whether the number from `start` to `end` may read differently once it was a double; short integers never do. */
function mayLose(text: string, start: number, end: number): boolean {
  if (end - start > EXACT_DIGITS) return true
  if (text.charCodeAt(start) === MINUS && end - start === 2 && text.charCodeAt(start + 1) === ZERO) return true
  let isFraction = false
  for (let at = start; at < end; at += 1) {
    const unit = text.charCodeAt(at)
    if (unit === LOWER_E || unit === UPPER_E) return true
    if (unit === DOT) isFraction = true
  }
  if (!isFraction) return false
  return (
    text.charCodeAt(end - 1) === ZERO ||
    text.startsWith(SMALL_PREFIX, start + (text.charCodeAt(start) === MINUS ? 1 : 0))
  )
}
