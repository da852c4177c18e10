import { toDouble } from '../base/index.ts'
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
  TEXT_LENGTH_MAX,
  toText,
  type Value,
} from './inline-frame.ts'

/** A function of the inline evaluator; an argument that is not given is `undefined`. */
export interface InlineFunction {
  readonly argumentsMin: number
  readonly argumentsMax: number
  readonly call: (frame: EvaluationFrame, first: Value, second: Value, third: Value) => Value
}

/** JSONata's functions on texts, numbers and any value: at most linear in their operands, with results no longer. */
export const SCALAR_FUNCTIONS: readonly (readonly [name: string, InlineFunction])[] = [
  ['exists', unary((_frame, value) => value !== undefined)],
  ['boolean', unary(booleanOf)],
  ['not', unary(not)],
  ['type', unary((_frame, value) => typeOf(value))],
  ['string', unary((frame, value) => (value === undefined ? undefined : charged(frame, toText(value))))],
  ['number', unary(numberOf)],
  ['abs', onNumber(Math.abs)],
  ['floor', onNumber(Math.floor)],
  ['ceil', onNumber(Math.ceil)],
  ['lowercase', onText((text) => text.toLowerCase())],
  ['uppercase', onText((text) => text.toUpperCase())],
  ['trim', onText(trimmed)],
  ['length', onText((text) => [...text].length)],
  ['contains', binary(contains)],
  ['substringBefore', binary(substringBefore)],
  ['substringAfter', binary(substringAfter)],
  // Latin-1 of the text, as JSONata has it.
  ['base64encode', onText((text) => Buffer.from(text, 'latin1').toString('base64'))],
  ['base64url', onText((text) => Buffer.from(text).toString('base64url'))],
  ['substring', { argumentsMin: 2, argumentsMax: 3, call: substring }],
  ['sqrt', onNumber((value) => (value < 0 ? bailOut() : Math.sqrt(value)))],
  ['round', { argumentsMin: 1, argumentsMax: 2, call: (_frame, value, precision) => round(value, precision) }],
  ['power', binary((_frame, base, exponent) => power(base, exponent))],
  ['split', { argumentsMin: 2, argumentsMax: 3, call: split }],
  ['replace', { argumentsMin: 3, argumentsMax: 3, call: replace }],
  ['toMillis', onText(toMillis)],
]

export function unary(call: (frame: EvaluationFrame, value: Value) => Value): InlineFunction {
  return { argumentsMin: 1, argumentsMax: 1, call }
}

export function binary(call: (frame: EvaluationFrame, first: Value, second: Value) => Value): InlineFunction {
  return { argumentsMin: 2, argumentsMax: 2, call }
}

function onNumber(call: (value: number) => number): InlineFunction {
  return unary((_frame, value) => (value === undefined ? undefined : call(asNumber(value))))
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

function power(base: Value, exponent: Value): Value {
  const by = asNumber(exponent)
  return base === undefined ? undefined : asNumber(asNumber(base) ** by)
}

function split(frame: EvaluationFrame, text: Value, separator: Value, limit: Value): Value {
  const mark = asText(separator)
  const most = limit === undefined ? undefined : asNumber(limit)
  if (text === undefined) return undefined
  if (most !== undefined && most < 0) return bailOut()
  return charged(frame, asText(text)).split(mark, most)
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

const ISO_TIMESTAMP = /^\d{4}(-[01]\d)?(-[0-3]\d)?(T[0-2]\d:[0-5]\d:[0-5]\d)?(\.\d+)?([+-][0-2]\d:?[0-5]\d|Z)?$/

function toMillis(text: string): number {
  return ISO_TIMESTAMP.test(text) ? asNumber(Date.parse(text)) : bailOut()
}
