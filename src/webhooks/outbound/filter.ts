import { suggest, type Violation } from '../../foundation/base/index.ts'
import {
  decimalForm,
  isJsonNumber,
  isJsonObject,
  type Json,
  JsonNumber,
  type JsonObject,
  toDouble,
  tryParseDotPath,
} from '../../foundation/json/index.ts'

/** The fields of an event that filters read. */
export interface FilteredEvent {
  readonly id: string
  readonly type: string
  readonly integratedAccountId?: string | null | undefined
  readonly payload: JsonObject
  readonly createdAt: Date
}

/** A parsed filter: whether an event passes it. Pure; at most `CONDITIONS_MAX` times `ITEMS_COMPARED_MAX` comparisons. */
export type EventPredicate = (event: FilteredEvent) => boolean

/** A parsed filter, and what is wrong with its text. With violations, only the conditions without one are in the predicate. */
export interface ParsedFilter {
  readonly passes: EventPredicate
  readonly violations: readonly Violation[]
}

/** Most conditions of one filter: every operator of a field is one, and every filter in it. */
const CONDITIONS_MAX = 100
/** Most violations that are reported. */
const VIOLATIONS_MAX = 20
/** Most levels of `$and`, `$or` and `$not` within each other. */
const NESTING_MAX = 8
/** Most items of `$in` and `$nin`. */
const LIST_MAX = 100
/** Items of a list in the payload that a condition is compared with: of longer lists the first ones. */
const ITEMS_COMPARED_MAX = 1_000
/** Longest text that is compared with. */
const TEXT_LENGTH_MAX = 1024

const FIELDS = ['id', 'type', 'created_at', 'integrated_account_id'] as const
type FilterField = (typeof FIELDS)[number]

type Scalar = Exclude<Json, JsonObject | readonly Json[]>
/** Whether one value of an event, which is no list, meets a condition. */
type ValueTest = (value: Json) => boolean

const OPERATORS = ['$eq', '$neq', '$gt', '$gte', '$lt', '$lte', '$in', '$nin', '$startsWith', '$endsWith', '$exist']

/**
 * Parses a filter: an object whose members must all hold.
 *
 * A member is a field with a value or an object of operators (`{"payload.status": "open"}`, `{"payload.amount": {"$gte": 10}}`),
 * or `$and` and `$or` with a list of filters, or `$not` with one. Fields are `id`, `type`, `created_at`,
 * `integrated_account_id` and paths into the payload, which begin with `payload.`; a name with dots is written
 * `payload["a.b"]`. A condition of a list holds when it holds for one of its first 1 000 items; `$neq` and `$nin` are
 * the opposites of `$eq` and `$in`, also for missing fields. Types are never converted. Linear in the length of the filter.
 *
 * @param field prefix of the fields of the violations
 */
export function parseFilter(filter: JsonObject, field: string): ParsedFilter {
  const parser = new FilterParser()
  const passes = parser.parse(filter, field, 0)
  if (!parser.isTooLarge) return { passes, violations: parser.violations }
  const description = `must have at most ${CONDITIONS_MAX} conditions, operators and nested filters together`
  return { passes, violations: [{ field, description, rule: 'filter.conditions' }] }
}

class FilterParser {
  readonly violations: Violation[] = []
  #conditions = 0

  /** Then the rest of the filter is not parsed. */
  get isTooLarge(): boolean {
    return this.#conditions > CONDITIONS_MAX
  }

  reject(field: string, description: string, rule: string): void {
    if (this.violations.length < VIOLATIONS_MAX) this.violations.push({ field, description, rule })
  }

  parse(filter: Json, at: string, depth: number): EventPredicate {
    if (!isJsonObject(filter)) {
      this.reject(at, 'must be an object of conditions', 'filter.object')
      return () => true
    }
    if (depth > NESTING_MAX) {
      this.reject(at, `must not be nested more than ${NESTING_MAX} levels deep`, 'filter.nesting')
      return () => true
    }
    const parts: EventPredicate[] = []
    for (const [key, value] of Object.entries(filter)) {
      if (this.isTooLarge) break
      parts.push(this.#parseMember(key, value, at, depth))
    }
    return (event) => parts.every((passes) => passes(event))
  }

  #parseMember(key: string, value: Json, parent: string, depth: number): EventPredicate {
    const at = `${parent}.${key}`
    switch (key) {
      case '$and': {
        const parts = this.#parseList(value, at, depth)
        return (event) => parts.every((passes) => passes(event))
      }
      case '$or': {
        const parts = this.#parseList(value, at, depth)
        return (event) => parts.some((passes) => passes(event))
      }
      case '$not': {
        this.#conditions += 1
        const passes = this.parse(value, at, depth + 1)
        return (event) => !passes(event)
      }
      default:
        return this.#parseField(key, value, at)
    }
  }

  #parseList(value: Json, at: string, depth: number): readonly EventPredicate[] {
    if (!Array.isArray(value) || value.length === 0) {
      this.reject(at, 'must be a list of at least one filter', 'filter.list')
      return []
    }
    this.#conditions += value.length
    if (this.isTooLarge) return []
    return value.map((filter, index) => this.parse(filter, `${at}[${index}]`, depth + 1))
  }

  #parseField(key: string, value: Json, at: string): EventPredicate {
    const read = this.#parsePath(key, at)
    const operators = isJsonObject(value) ? Object.entries(value) : [['$eq', value] as const]
    if (operators.length === 0)
      this.reject(at, `must be a value or operators: ${OPERATORS.join(', ')}`, 'filter.operator')
    this.#conditions += Math.max(operators.length, 1)
    if (read === undefined || this.isTooLarge) return () => true
    const isTime = key === 'created_at'
    const tests = operators.map(([operator, operand]) => {
      const place = isJsonObject(value) ? `${at}.${operator}` : at
      return this.#parseOperator(operator, operand, place, isTime)
    })
    return (event) => {
      const found = read(event)
      return tests.every((test) => test(found))
    }
  }

  #parsePath(key: string, at: string): ((event: FilteredEvent) => Json | undefined) | undefined {
    if (isField(key)) return (event) => readField(event, key)
    const parsed = /^payload[.[]/.test(key) ? tryParseDotPath(key) : undefined
    if (parsed === undefined || 'problem' in parsed) {
      const description = `is not a field${suggest(key, FIELDS) || ';'} fields are ${FIELDS.join(', ')} and paths such as payload.status`
      this.reject(at, description, 'filter.field')
      return undefined
    }
    const steps = parsed.steps.slice(1)
    return ({ payload }) => readPath(payload, steps)
  }

  /** The test of a value that may be missing or a list. */
  #parseOperator(operator: string, operand: Json, at: string, isTime: boolean): (value: Json | undefined) => boolean {
    switch (operator) {
      case '$exist':
        if (typeof operand !== 'boolean') this.reject(at, 'must be true or false', 'filter.operand')
        return (value) => (value !== undefined) === operand
      case '$neq':
        return negated(this.#equals([operand], at, isTime))
      case '$nin':
        return negated(this.#equals(this.#list(operand, at), at, isTime))
      case '$eq':
        return someItem(this.#equals([operand], at, isTime))
      case '$in':
        return someItem(this.#equals(this.#list(operand, at), at, isTime))
      case '$gt':
      case '$gte':
      case '$lt':
      case '$lte':
        return someItem(this.#compares(operator, operand, at, isTime))
      case '$startsWith':
      case '$endsWith':
        return someItem(this.#touches(operator, operand, at))
      default:
        this.reject(
          at,
          `is not an operator${suggest(operator, OPERATORS) || ';'} operators are ${OPERATORS.join(', ')}`,
          'filter.operator',
        )
        return () => true
    }
  }

  #list(operand: Json, at: string): readonly Json[] {
    if (Array.isArray(operand) && operand.length > 0 && operand.length <= LIST_MAX) return operand
    this.reject(at, `must be a list of 1 to ${LIST_MAX} values`, 'filter.operand')
    return []
  }

  #equals(operands: readonly Json[], at: string, isTime: boolean): ValueTest {
    const values = new Set<Json>()
    const numbers = new Set<string>()
    for (const operand of operands) {
      const scalar = this.#scalar(operand, at, isTime)
      if (scalar === undefined) continue
      if (!isJsonNumber(scalar)) {
        values.add(scalar)
        continue
      }
      const double = Number(scalar)
      // A number of the payload is a double exactly when it is written as one: only then may it equal this one.
      if (decimalKey(double) === decimalKey(scalar)) values.add(double)
      numbers.add(decimalKey(scalar))
    }
    return (value) =>
      values.has(value) || (value instanceof JsonNumber && numbers.size > 0 && numbers.has(readNumber(value).key))
  }

  #compares(operator: '$gt' | '$gte' | '$lt' | '$lte', operand: Json, at: string, isTime: boolean): ValueTest {
    const bound = toDouble(this.#scalar(operand, at, isTime))
    if (typeof bound !== 'number' && typeof bound !== 'string') {
      if (bound !== undefined) this.reject(at, 'must be a number or a text', 'filter.operand')
      return () => true
    }
    return (value) => {
      const left = value instanceof JsonNumber ? readNumber(value).double : value
      // Only values of one type have an order.
      return (
        (typeof left === 'number' || typeof left === 'string') &&
        typeof left === typeof bound &&
        isOrdered(operator, left, bound)
      )
    }
  }

  #touches(operator: '$startsWith' | '$endsWith', operand: Json, at: string): ValueTest {
    if (typeof operand !== 'string' || operand === '' || operand.length > TEXT_LENGTH_MAX) {
      this.reject(at, `must be a text of 1 to ${TEXT_LENGTH_MAX} characters`, 'filter.operand')
      return () => true
    }
    const touches = operator === '$startsWith' ? 'startsWith' : 'endsWith'
    return (value) => typeof value === 'string' && value[touches](operand)
  }

  /** A value to compare with; a time in the form in which events have it. */
  #scalar(operand: Json, at: string, isTime: boolean): Scalar | undefined {
    if (!isScalar(operand) || (typeof operand === 'string' && operand.length > TEXT_LENGTH_MAX)) {
      const description = `must be a number, true, false, null or a text of at most ${TEXT_LENGTH_MAX} characters`
      this.reject(at, description, 'filter.operand')
      return undefined
    }
    if (!isTime) return operand
    const time = typeof operand === 'string' && RFC_3339.test(operand) ? Date.parse(operand) : Number.NaN
    if (!Number.isNaN(time)) return new Date(time).toISOString()
    this.reject(at, 'must be a time such as 2026-01-31T12:00:00Z', 'filter.operand')
    return undefined
  }
}

const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/

function isField(key: string): key is FilterField {
  return FIELDS.some((field) => field === key)
}

function readField(event: FilteredEvent, field: FilterField): Json | undefined {
  switch (field) {
    case 'id':
      return event.id
    case 'type':
      return event.type
    case 'created_at':
      return event.createdAt.toISOString()
    case 'integrated_account_id':
      return event.integratedAccountId ?? undefined
  }
}

/** Follows own keys and list indexes, one step a name: unlike `getAtPath`, its cost does not grow with the number of keys. */
function readPath(payload: JsonObject, steps: readonly (string | number)[]): Json | undefined {
  let current: Json | undefined = payload
  for (const step of steps) {
    if (Array.isArray(current)) current = current[Number(step)]
    else if (isJsonObject(current) && Object.hasOwn(current, step)) current = current[step]
    else return undefined
  }
  return current
}

function isScalar(value: Json): value is Scalar {
  return typeof value !== 'object' || value === null || isJsonNumber(value)
}

/** Equal numbers have equal keys, however they are written. */
function decimalKey(value: number | JsonNumber): string {
  const { text, exponent } = decimalForm(value)
  return `${text}|${exponent}`
}

interface ReadNumber {
  readonly key: string
  readonly double: number
}

/** What was read of numbers that are no doubles, which may be long: once for all conditions and webhooks. */
const READ_NUMBERS = new WeakMap<JsonNumber, ReadNumber>()

function readNumber(number: JsonNumber): ReadNumber {
  const known = READ_NUMBERS.get(number) ?? { key: decimalKey(number), double: number.valueOf() }
  READ_NUMBERS.set(number, known)
  return known
}

function isOrdered<Value extends number | string>(
  operator: '$gt' | '$gte' | '$lt' | '$lte',
  left: Value,
  right: Value,
) {
  switch (operator) {
    case '$gt':
      return left > right
    case '$gte':
      return left >= right
    case '$lt':
      return left < right
    case '$lte':
      return left <= right
  }
}

function someItem(test: ValueTest): (value: Json | undefined) => boolean {
  return (value) => (Array.isArray(value) ? someOfFirst(value, test) : value !== undefined && test(value))
}

function someOfFirst(items: readonly Json[], test: ValueTest): boolean {
  const count = Math.min(items.length, ITEMS_COMPARED_MAX)
  for (let index = 0; index < count; index++) if (test(items[index] ?? null)) return true
  return false
}

function negated(test: ValueTest): (value: Json | undefined) => boolean {
  const holds = someItem(test)
  return (value) => !holds(value)
}
