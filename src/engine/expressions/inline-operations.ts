import { toDouble } from '../../foundation/json/index.ts'
import {
  asNumber,
  bailOut,
  booleanOf,
  type CompiledNode,
  charge,
  charged,
  concatenate,
  type EvaluationFrame,
  isArray,
  toText,
  type Value,
} from './inline-frame.ts'

/** Compiles a binary operator; bails out for an unknown one. Numbers are doubles, as in JSONata. */
export function compileBinary(operator: unknown, left: CompiledNode, right: CompiledNode): CompiledNode {
  switch (operator) {
    case '=':
      return (frame) => isEqual(frame, left(frame), right(frame)) === true
    case '!=':
      return (frame) => isEqual(frame, left(frame), right(frame)) === false
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

/** With a side missing neither `=` nor `!=` holds. Bails out for two objects, whose comparison is not constant. */
function isEqual(frame: EvaluationFrame, given: Value, other: Value): boolean | undefined {
  const left = toDouble(given)
  const right = toDouble(other)
  if (left === undefined || right === undefined) return undefined
  if (left === right) return true
  if (typeof left !== 'object' || left === null || typeof right !== 'object' || right === null) return false
  if (!isArray(left) || !isArray(right)) return bailOut()
  if (left.length !== right.length) return false
  charge(frame, left.length)
  return left.every((item, index) => isEqual(frame, item, right[index]) === true)
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
