import { type Json, toDouble } from '../base/index.ts'
import {
  asNumber,
  asText,
  bailOut,
  charge,
  charged,
  type EvaluationFrame,
  isArray,
  isPlainObject,
  keysOf,
  toSequence,
  type Value,
} from './inline-frame.ts'
import { binary, type InlineFunction, unary } from './inline-functions.ts'

/** JSONata's functions on lists and objects: linear in their operands. */
export const COLLECTION_FUNCTIONS: readonly (readonly [name: string, InlineFunction])[] = [
  ['count', unary((_frame, value) => countOf(value))],
  ['lookup', binary((_frame, object, key) => lookupKey(object, key))],
  ['sum', onNumbers((numbers) => numbers.reduce((total, each) => total + each, 0))],
  ['max', onNumbers((numbers) => (numbers.length === 0 ? undefined : numbers.reduce((a, b) => Math.max(a, b))))],
  ['min', onNumbers((numbers) => (numbers.length === 0 ? undefined : numbers.reduce((a, b) => Math.min(a, b))))],
  ['average', onNumbers((numbers) => (numbers.length === 0 ? undefined : meanOf(numbers)))],
  ['join', { argumentsMin: 1, argumentsMax: 2, call: join }],
  ['append', binary(append)],
  ['distinct', unary(distinct)],
  ['reverse', unary(reverse)],
  ['keys', unary(keys)],
  ['merge', unary(merge)],
]

function countOf(value: Value): number {
  if (value === undefined) return 0
  return isArray(value) ? value.length : 1
}

function lookupKey(object: Value, key: Value): Value {
  const name = asText(key)
  if (isArray(object)) return bailOut()
  return isPlainObject(object) && Object.hasOwn(object, name) ? object[name] : undefined
}

/** One number counts as a list of one. */
function onNumbers(call: (numbers: readonly number[]) => number | undefined): InlineFunction {
  return unary((frame, value) => {
    if (value === undefined) return undefined
    const list = listOf(value)
    charge(frame, list.length)
    const result = call(list.map(asNumber))
    return result === undefined ? undefined : asNumber(result)
  })
}

function meanOf(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0) / numbers.length
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

/** Bails out for lists of lists and objects, whose comparison is not linear. */
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
  return frame.sequences?.has(value) === true ? toSequence(frame, results) : results
}

function reverse(frame: EvaluationFrame, value: Value): Value {
  if (value === undefined) return undefined
  const list = listOf(value)
  charge(frame, list.length)
  return list.toReversed()
}

function keys(frame: EvaluationFrame, value: Value): Value {
  if (!isArray(value)) return isPlainObject(value) ? toSequence(frame, keysOf(frame, value)) : undefined
  charge(frame, value.length)
  const merged: Record<string, true> = Object.create(null)
  for (const item of value) {
    if (isArray(item)) return bailOut()
    if (isPlainObject(item)) for (const key of keysOf(frame, item)) merged[key] = true
  }
  // With a key of JSONata's own objects it takes the merged object for a function.
  if (!isPlainObject(merged)) return bailOut()
  return toSequence(frame, Object.keys(merged))
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
