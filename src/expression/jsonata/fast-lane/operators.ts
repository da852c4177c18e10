import { withDouble } from '../../../base/index.ts'
import { type Evaluate, type Frame, leave, spend, type Value } from './frame.ts'
import { booleanOf, isArray, joined, paid, requireNumber, textOf } from './values.ts'

/** Builds the closure of a binary operator, or leaves when the operator is not one of this lane's. Numbers are doubles here. */
export function compileBinary(operator: unknown, left: Evaluate, right: Evaluate): Evaluate {
  switch (operator) {
    case '=':
      return (frame) => isEqual(withDouble(left(frame)), withDouble(right(frame))) === true
    case '!=':
      return (frame) => isEqual(withDouble(left(frame)), withDouble(right(frame))) === false
    case '<':
      return (frame) => compare(withDouble(left(frame)), withDouble(right(frame)), (a, b) => a < b)
    case '<=':
      return (frame) => compare(withDouble(left(frame)), withDouble(right(frame)), (a, b) => a <= b)
    case '>':
      return (frame) => compare(withDouble(left(frame)), withDouble(right(frame)), (a, b) => a > b)
    case '>=':
      return (frame) => compare(withDouble(left(frame)), withDouble(right(frame)), (a, b) => a >= b)
    case 'and':
      return (frame) => booleanOf(frame, left(frame)) === true && booleanOf(frame, right(frame)) === true
    case 'or':
      return (frame) => booleanOf(frame, left(frame)) === true || booleanOf(frame, right(frame)) === true
    case 'in':
      return (frame) => isIn(frame, withDouble(left(frame)), withDouble(right(frame)))
    case '&':
      return (frame) => paid(frame, joined(textOf(left(frame)), textOf(right(frame))))
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
      return leave()
  }
}

/** The closure of unary minus. */
export function compileNegation(operand: Evaluate): Evaluate {
  return (frame) => {
    const value = operand(frame)
    return value === undefined ? undefined : -requireNumber(value)
  }
}

/** With a side missing neither `=` nor `!=` holds: no answer. Comparing two objects is a walk, left to the sandbox. */
function isEqual(left: Value, right: Value): boolean | undefined {
  if (left === undefined || right === undefined) return undefined
  if (left === right) return true
  if (typeof left === 'object' && left !== null && typeof right === 'object' && right !== null) leave()
  return false
}

type Ordering = (left: number | string, right: number | string) => boolean

function compare(left: Value, right: Value, holds: Ordering): Value {
  const comparable = isComparable(left) && isComparable(right)
  if (!comparable) return leave()
  if (left === undefined || right === undefined) return undefined
  return typeof left === typeof right ? holds(left, right) : leave()
}

function isComparable(value: Value): value is number | string | undefined {
  return value === undefined || typeof value === 'string' || typeof value === 'number'
}

function calculate(left: Value, right: Value, operation: (left: number, right: number) => number): Value {
  if (left !== undefined) requireNumber(left)
  if (right !== undefined) requireNumber(right)
  return left === undefined || right === undefined
    ? undefined
    : requireNumber(operation(requireNumber(left), requireNumber(right)))
}

function isIn(frame: Frame, item: Value, list: Value): boolean {
  if (item === undefined || list === undefined) return false
  if (typeof item === 'object' && item !== null) return leave()
  if (!isArray(list)) return list === item
  spend(frame, list.length)
  return list.some((each) => withDouble(each) === item)
}
