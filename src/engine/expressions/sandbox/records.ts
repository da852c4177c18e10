type Fields = Readonly<Record<string, unknown>>

/** Deeper parts are left as they are. */
const DEPTH_MAX = 100

/** True for an object of JSON; numbers and functions are also objects in JavaScript. */
function isObject(value: unknown): value is Fields {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** Missing, null, the empty text, the empty list and the empty object. */
function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === '') return true
  if (Array.isArray(value)) return value.length === 0
  return isObject(value) && Object.keys(value).length === 0
}

/** A scalar as a key; numbers as JSONata writes them. */
function keyOf(value: unknown): string | undefined {
  const scalar = typeof value === 'object' && value !== null && !isObject(value) ? value.valueOf() : value
  switch (typeof scalar) {
    case 'string':
    case 'boolean':
      return String(scalar)
    case 'number':
      return String(Number.isInteger(scalar) ? scalar : Number(scalar.toPrecision(15)))
    default:
      return undefined
  }
}

/** `$mapValue(value, map, default?)`: of a list the values of its elements, without those that have none. */
export function mapValue(value: unknown, map: unknown, fallback?: unknown): unknown {
  if (!isObject(map)) return undefined
  if (!Array.isArray(value)) return mapped(value, map, fallback)
  return value.map((item: unknown) => mapped(item, map, fallback)).filter((item) => item !== undefined)
}

function mapped(value: unknown, map: Fields, fallback: unknown): unknown {
  const key = keyOf(value)
  if (key === undefined) return undefined
  return Object.hasOwn(map, key) ? map[key] : fallback
}

/** `$firstNonEmpty(a, b, …)` */
export function firstNonEmpty(...values: readonly unknown[]): unknown {
  return values.find((value) => !isEmpty(value))
}

/** `$removeEmpty(value)`: without the empty parts of objects and lists, at any depth; nothing when all is empty. */
export function removeEmpty(value: unknown): unknown {
  const left = withoutEmpty(value, 0)
  return isEmpty(left) ? undefined : left
}

function withoutEmpty(value: unknown, depth: number): unknown {
  if (depth > DEPTH_MAX) return value
  if (Array.isArray(value)) {
    return value.map((item: unknown) => withoutEmpty(item, depth + 1)).filter((item) => !isEmpty(item))
  }
  if (!isObject(value)) return value
  const entries = Object.entries(value).map(([key, item]) => [key, withoutEmpty(item, depth + 1)] as const)
  return Object.fromEntries(entries.filter(([, item]) => !isEmpty(item)))
}

/** `$pick(object, keys)` */
export function pick(object: unknown, keys: unknown): unknown {
  if (!isObject(object)) return undefined
  return Object.fromEntries(namesOf(keys).flatMap((key) => (Object.hasOwn(object, key) ? [[key, object[key]]] : [])))
}

/** `$omit(object, keys)` */
export function omit(object: unknown, keys: unknown): unknown {
  if (!isObject(object)) return undefined
  const omitted = new Set(namesOf(keys))
  return Object.fromEntries(Object.entries(object).filter(([key]) => !omitted.has(key)))
}

function namesOf(keys: unknown): readonly string[] {
  return (Array.isArray(keys) ? keys : [keys]).filter((key) => typeof key === 'string')
}

/** `$compact(list)`: without its empty elements; one value counts as a list. */
export function compact(list: unknown): unknown {
  if (list === undefined) return undefined
  return (Array.isArray(list) ? list : [list]).filter((item) => !isEmpty(item))
}

/** `$keyBy(list, name)`: the last element of each value of a field. */
export function keyBy(list: unknown, name: unknown): unknown {
  if (list === undefined || typeof name !== 'string') return undefined
  const entries = (Array.isArray(list) ? list : [list]).flatMap((item: unknown) => {
    const key = isObject(item) && Object.hasOwn(item, name) ? keyOf(item[name]) : undefined
    return key === undefined ? [] : [[key, item] as const]
  })
  return Object.fromEntries(entries)
}
