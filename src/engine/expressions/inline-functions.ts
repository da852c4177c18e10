import { type Json, toDouble } from '../../foundation/json/index.ts'
import {
  asNumber,
  asText,
  bailOut,
  booleanOf,
  charge,
  charged,
  type EvaluationFrame,
  isArray,
  isPlainObject,
  keysOf,
  TEXT_LENGTH_MAX,
  toSequence,
  toText,
  type Value,
} from './inline-frame.ts'

/** A function of the inline evaluator; an argument that is not given is `undefined`. */
interface InlineFunction {
  readonly argumentsMin: number
  readonly argumentsMax: number
  readonly call: (frame: EvaluationFrame, first: Value, second: Value, third: Value) => Value
}

/** JSONata's functions that mappings use: at most linear in their operands, with results no longer. */
export const INLINE_FUNCTIONS: ReadonlyMap<string, InlineFunction> = new Map<string, InlineFunction>([
  ['exists', unary((_frame, value) => value !== undefined)],
  ['not', unary(not)],
  ['type', unary((_frame, value) => typeOf(value))],
  ['string', unary((frame, value) => (value === undefined ? undefined : charged(frame, toText(value))))],
  ['number', unary(numberOf)],
  ['lowercase', onText((text) => text.toLowerCase())],
  ['uppercase', onText((text) => text.toUpperCase())],
  ['trim', onText(trimmed)],
  // Latin-1 of the text, as JSONata has it.
  ['base64encode', onText((text) => Buffer.from(text, 'latin1').toString('base64'))],
  ['contains', binary(contains)],
  ['substringBefore', binary(substringBefore)],
  ['substringAfter', binary(substringAfter)],
  ['substring', { argumentsMin: 2, argumentsMax: 3, call: substring }],
  ['split', binary(split)],
  ['replace', { argumentsMin: 3, argumentsMax: 3, call: replace }],
  ['round', { argumentsMin: 1, argumentsMax: 2, call: (_frame, value, precision) => round(value, precision) }],
  ['floor', unary((_frame, value) => (value === undefined ? undefined : Math.floor(asNumber(value))))],
  ['toMillis', onText(toMillis)],
  ['count', unary((_frame, value) => (isArray(value) ? value.length : value === undefined ? 0 : 1))],
  ['merge', unary(merge)],
  ['lookup', binary((_frame, object, key) => lookupKey(object, key))],
  ['join', { argumentsMin: 1, argumentsMax: 2, call: join }],
  ['append', binary(append)],
  ['distinct', unary(distinct)],
  ['keys', unary((frame, value) => (isPlainObject(value) ? toSequence(keysOf(frame, value)) : keysOfOther(value)))],
])

function unary(call: (frame: EvaluationFrame, value: Value) => Value): InlineFunction {
  return { argumentsMin: 1, argumentsMax: 1, call }
}

function binary(call: (frame: EvaluationFrame, first: Value, second: Value) => Value): InlineFunction {
  return { argumentsMin: 2, argumentsMax: 2, call }
}

function onText(call: (text: string) => Value): InlineFunction {
  return unary((frame, value) => (value === undefined ? undefined : call(charged(frame, asText(value)))))
}

function not(frame: EvaluationFrame, value: Value): Value {
  const truth = booleanOf(frame, value)
  return truth === undefined ? undefined : !truth
}

function typeOf(given: Value): Value {
  const value = toDouble(given)
  if (value === undefined) return undefined
  if (value === null) return 'null'
  if (isArray(value)) return 'array'
  if (typeof value === 'number') return asNumber(value) === value ? 'number' : bailOut()
  return typeof value === 'object' && !isPlainObject(value) ? bailOut() : typeof value
}

const DECIMAL = /^-?[0-9]+(\.[0-9]+)?([Ee][-+]?[0-9]+)?$/

function numberOf(frame: EvaluationFrame, value: Value): Value {
  if (value === undefined) return undefined
  if (typeof value === 'boolean') return value ? 1 : 0
  if (typeof value !== 'string') return asNumber(value)
  return DECIMAL.test(charged(frame, value)) ? asNumber(Number.parseFloat(value)) : bailOut()
}

/** Texts that `$trim` changes; most are as they should be. */
const UNTRIMMED = /^ | $|[\t\n\r]| {2}/

function trimmed(text: string): string {
  if (!UNTRIMMED.test(text)) return text
  return text.replace(/[ \t\n\r]+/g, ' ').replace(/^ | $/g, '')
}

function contains(frame: EvaluationFrame, text: Value, part: Value): Value {
  // The types of both are checked even when one is missing.
  const whole = text === undefined ? undefined : charged(frame, asText(text))
  const wanted = part === undefined ? undefined : asText(part)
  return whole === undefined || wanted === undefined ? undefined : whole.includes(wanted)
}

function substringBefore(frame: EvaluationFrame, text: Value, mark: Value): Value {
  const separator = asText(mark)
  if (text === undefined) return undefined
  const whole = charged(frame, asText(text))
  const at = whole.indexOf(separator)
  return at === -1 ? whole : whole.slice(0, at)
}

function substringAfter(frame: EvaluationFrame, text: Value, mark: Value): Value {
  const separator = asText(mark)
  if (text === undefined) return undefined
  const whole = charged(frame, asText(text))
  const at = whole.indexOf(separator)
  return at === -1 ? whole : whole.slice(at + separator.length)
}

/** Counts characters, not code units; a negative start counts from the end. */
function substring(frame: EvaluationFrame, text: Value, from: Value, count: Value): Value {
  const start = asNumber(from)
  const length = count === undefined ? undefined : asNumber(count)
  if (text === undefined) return undefined
  const characters = [...charged(frame, asText(text))]
  const first = characters.length + start < 0 ? 0 : start
  if (length === undefined) return characters.slice(first).join('')
  if (length <= 0) return ''
  const end = first >= 0 ? first + length : characters.length + first + length
  return characters.slice(first, end).join('')
}

/** Rounds half to even; the decimal point is shifted in the text, as JSONata does. */
function round(given: Value, precision: Value): Value {
  const digits = precision === undefined ? 0 : asNumber(precision)
  if (given === undefined) return undefined
  const value = shifted(asNumber(given), digits)
  const nearest = Math.round(value)
  const isWrongWay = Math.abs(nearest - value) === 0.5 && Math.abs(nearest % 2) === 1
  return asNumber(shifted(isWrongWay ? nearest - 1 : nearest, -digits)) + 0
}

function shifted(value: number, digits: number): number {
  if (digits === 0) return value
  const [mantissa, exponent] = String(value).split('e')
  return Number(`${mantissa}e${exponent === undefined ? digits : Number(exponent) + digits}`)
}

function split(frame: EvaluationFrame, text: Value, separator: Value): Value {
  const mark = asText(separator)
  return text === undefined ? undefined : charged(frame, asText(text)).split(mark)
}

function replace(frame: EvaluationFrame, text: Value, pattern: Value, replacement: Value): Value {
  const [wanted, substitute] = [asText(pattern), asText(replacement)]
  if (wanted === '') return bailOut()
  if (text === undefined) return undefined
  const parts = charged(frame, asText(text)).split(wanted)
  const added = (parts.length - 1) * substitute.length
  charge(frame, added)
  return added > TEXT_LENGTH_MAX ? bailOut() : parts.join(substitute)
}

function lookupKey(object: Value, key: Value): Value {
  const name = asText(key)
  if (isArray(object)) return bailOut()
  return isPlainObject(object) && Object.hasOwn(object, name) ? object[name] : undefined
}

function listOf(value: Json): readonly Json[] {
  return isArray(value) ? value : [value]
}

function join(frame: EvaluationFrame, texts: Value, separator: Value): Value {
  const mark = separator === undefined ? '' : asText(separator)
  if (texts === undefined) return undefined
  const list = listOf(texts)
  charge(frame, list.length * (1 + mark.length))
  for (const text of list) charged(frame, asText(text))
  return list.join(mark)
}

/** Longest list of the sandbox. */
const LIST_LENGTH_MAX = 100_000

function append(frame: EvaluationFrame, first: Value, second: Value): Value {
  if (first === undefined) return second
  if (second === undefined) return first
  const [left, right] = [listOf(first), listOf(second)]
  charge(frame, left.length + right.length)
  return left.length + right.length > LIST_LENGTH_MAX ? bailOut() : [...left, ...right]
}

/** Bails out for lists of lists and objects, whose comparison is not linear, and where it matters whether the list is a sequence. */
function distinct(frame: EvaluationFrame, value: Value): Value {
  if (!isArray(value) || value.length <= 1) return value
  charge(frame, value.length)
  const seen = new Set<unknown>()
  const results: Json[] = []
  for (const item of value) {
    const scalar = toDouble(item)
    if (typeof scalar === 'object' && scalar !== null) return bailOut()
    if (typeof scalar === 'string') charged(frame, scalar)
    if (seen.has(scalar)) continue
    seen.add(scalar)
    results.push(item)
  }
  return results.length === 1 ? bailOut() : results
}

/** JSONata merges the keys of the objects of a list; nothing else has keys. */
function keysOfOther(value: Value): undefined {
  return isArray(value) ? bailOut() : undefined
}

function merge(frame: EvaluationFrame, value: Value): Value {
  if (value === undefined) return undefined
  const list = listOf(value)
  charge(frame, list.length)
  const result: Record<string, Json> = {}
  for (const object of list) {
    if (!isPlainObject(object)) return bailOut()
    for (const key of keysOf(frame, object)) {
      if (key === '__proto__') return bailOut()
      result[key] = object[key] ?? null
    }
  }
  return result
}

const ISO_TIMESTAMP = /^\d{4}(-[01]\d)?(-[0-3]\d)?(T[0-2]\d:[0-5]\d:[0-5]\d)?(\.\d+)?([+-][0-2]\d:?[0-5]\d|Z)?$/

function toMillis(text: string): number {
  return ISO_TIMESTAMP.test(text) ? asNumber(Date.parse(text)) : bailOut()
}
