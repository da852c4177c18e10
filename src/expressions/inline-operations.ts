import { JsonNumber, toDouble } from '../base/index.ts'
import {
  asNumber,
  asText,
  bailOut,
  booleanOf,
  type CompiledNode,
  charge,
  charged,
  concatenate,
  type EvaluationFrame,
  isArray,
  isPlainObject,
  toText,
  type Value,
} from './inline-frame.ts'

/** Compiles a binary operator; bails out for an unknown one. Numbers are doubles, as in JSONata. */
export function compileBinary(operator: unknown, left: CompiledNode, right: CompiledNode): CompiledNode {
  switch (operator) {
    case '=':
      return (frame) => isEqual(toDouble(left(frame)), toDouble(right(frame))) === true
    case '!=':
      return (frame) => isEqual(toDouble(left(frame)), toDouble(right(frame))) === false
    case '<':
      return (frame) => compare(toDouble(left(frame)), toDouble(right(frame)), (a, b) => a < b)
    case '<=':
      return (frame) => compare(toDouble(left(frame)), toDouble(right(frame)), (a, b) => a <= b)
    case '>':
      return (frame) => compare(toDouble(left(frame)), toDouble(right(frame)), (a, b) => a > b)
    case '>=':
      return (frame) => compare(toDouble(left(frame)), toDouble(right(frame)), (a, b) => a >= b)
    case 'and':
      return (frame) => booleanOf(frame, left(frame)) === true && booleanOf(frame, right(frame)) === true
    case 'or':
      return (frame) => booleanOf(frame, left(frame)) === true || booleanOf(frame, right(frame)) === true
    case 'in':
      return (frame) => isIn(frame, toDouble(left(frame)), toDouble(right(frame)))
    case '&':
      return (frame) => charged(frame, concatenate(toText(left(frame)), toText(right(frame))))
    case '+':
      return (frame) => calculate(left(frame), right(frame), (a, b) => a + b)
    case '-':
      return (frame) => calculate(left(frame), right(frame), (a, b) => a - b)
    case '*':
      return (frame) => calculate(left(frame), right(frame), (a, b) => a * b)
    case '/':
      return (frame) => calculate(left(frame), right(frame), (a, b) => a / b)
    case '%':
      return (frame) => calculate(left(frame), right(frame), (a, b) => a % b)
    default:
      return bailOut()
  }
}

/** Compiles unary minus. */
export function compileNegation(operand: CompiledNode): CompiledNode {
  return (frame) => {
    const value = operand(frame)
    return value === undefined ? undefined : -asNumber(value)
  }
}

/** With a side missing neither `=` nor `!=` holds. Bails out for two objects, whose comparison is not constant. */
function isEqual(left: Value, right: Value): boolean | undefined {
  if (left === undefined || right === undefined) return undefined
  if (left === right) return true
  if (typeof left === 'object' && left !== null && typeof right === 'object' && right !== null) bailOut()
  return false
}

type Ordering = (left: number | string, right: number | string) => boolean

function compare(left: Value, right: Value, holds: Ordering): Value {
  const comparable = isComparable(left) && isComparable(right)
  if (!comparable) return bailOut()
  if (left === undefined || right === undefined) return undefined
  return typeof left === typeof right ? holds(left, right) : bailOut()
}

function isComparable(value: Value): value is number | string | undefined {
  return value === undefined || typeof value === 'string' || typeof value === 'number'
}

function calculate(left: Value, right: Value, operation: (left: number, right: number) => number): Value {
  if (left !== undefined) asNumber(left)
  if (right !== undefined) asNumber(right)
  return left === undefined || right === undefined ? undefined : asNumber(operation(asNumber(left), asNumber(right)))
}

function isIn(frame: EvaluationFrame, item: Value, list: Value): boolean {
  if (item === undefined || list === undefined) return false
  if (typeof item === 'object' && item !== null) return bailOut()
  if (!isArray(list)) return list === item
  charge(frame, list.length)
  return list.some((each) => toDouble(each) === item)
}

/** Compiles a call; bails out for a function or a number of arguments that is not in the table below. */
export function compileCall(name: unknown, args: readonly CompiledNode[]): CompiledNode {
  const native = typeof name === 'string' ? INLINE_FUNCTIONS.get(name) : undefined
  const [first, second = MISSING, third = MISSING] = args
  // With fewer arguments than declared JSONata takes the context; such calls are rare.
  if (!native || !first || args.length < native.argumentsMin || args.length > native.argumentsMax) return bailOut()
  const { call } = native
  return (frame) => call(frame, argument(first(frame)), argument(second(frame)), argument(third(frame)))
}

/** JSONata wraps functions among the arguments; bails out for data that looks like one. */
function argument(value: Value): Value {
  const isData = typeof value !== 'object' || value === null || isArray(value) || value instanceof JsonNumber
  return isData || isPlainObject(value) ? value : bailOut()
}

const MISSING: CompiledNode = () => undefined

interface InlineFunction {
  readonly argumentsMin: number
  readonly argumentsMax: number
  readonly call: (frame: EvaluationFrame, first: Value, second: Value, third: Value) => Value
}

/** Functions that are at most linear in one operand, with results no longer than it. */
const INLINE_FUNCTIONS: ReadonlyMap<string, InlineFunction> = new Map<string, InlineFunction>([
  ['exists', unary((_frame, value) => value !== undefined)],
  ['boolean', unary(booleanOf)],
  ['not', unary(not)],
  ['type', unary((_frame, value) => typeOf(value))],
  ['count', unary((_frame, value) => countOf(value))],
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
  ['lookup', binary((_frame, object, key) => lookupKey(object, key))],
  // Latin-1 of the text, as JSONata has it.
  ['base64encode', onText((text) => Buffer.from(text, 'latin1').toString('base64'))],
  ['base64url', onText((text) => Buffer.from(text).toString('base64url'))],
  ['substring', { argumentsMin: 2, argumentsMax: 3, call: substring }],
])

function unary(call: (frame: EvaluationFrame, value: Value) => Value): InlineFunction {
  return { argumentsMin: 1, argumentsMax: 1, call }
}

function binary(call: (frame: EvaluationFrame, first: Value, second: Value) => Value): InlineFunction {
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

function countOf(value: Value): number {
  if (value === undefined) return 0
  return isArray(value) ? value.length : 1
}

const DECIMAL = /^-?[0-9]+(\.[0-9]+)?([Ee][-+]?[0-9]+)?$/

function numberOf(frame: EvaluationFrame, value: Value): Value {
  if (value === undefined) return undefined
  if (typeof value === 'boolean') return value ? 1 : 0
  if (typeof value !== 'string') return asNumber(value)
  return DECIMAL.test(charged(frame, value)) ? asNumber(Number.parseFloat(value)) : bailOut()
}

function trimmed(text: string): string {
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

function lookupKey(object: Value, key: Value): Value {
  const name = asText(key)
  if (isArray(object)) return bailOut()
  return isPlainObject(object) && Object.hasOwn(object, name) ? object[name] : undefined
}
