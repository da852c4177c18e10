import { isJsonObject, type Json, JsonNumber, type JsonObject } from '../../foundation/json/index.ts'

/** What a double of a result was in the input, when a double does not write it back. */
type Origin = JsonNumber | 'several'

const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/

/**
 * The value that the sandbox gave, with the numbers of the input that it only passed on as they were: the sandbox knows doubles
 * alone. A double that stands for one number of the input is that number; so `items.{"id": id}` gives the same ids whether the
 * size of its input leads it to the sandbox or not.
 *
 * Whole numbers of an input that are one and the same double cannot be told apart: a result with it fails, because these are
 * mostly ids. Of other numbers the result has the double. `1.0` and `1E5` are the doubles 1 and 100000, which are too often
 * results of their own. What an expression computes has the precision of doubles, so that a result that is the double of a
 * number of the input may be written as that number.
 *
 * @param sources the input, and the values of variables
 * @returns `ambiguous` when the numbers cannot be told apart
 */
export function restorePassedNumbers(
  value: Json,
  sources: readonly Json[],
): { readonly value: Json } | { readonly kind: 'ambiguous' } {
  const origins = new Map<number, Origin>()
  for (const source of sources) collectInexact(origins, source)
  if (origins.size === 0) return { value }
  for (const source of sources) collectExact(origins, source)
  const restoring: Restoring = { origins, isAmbiguous: false }
  const restored = restore(restoring, value)
  return restoring.isAmbiguous ? { kind: 'ambiguous' } : { value: restored }
}

interface Restoring {
  readonly origins: ReadonlyMap<number, Origin>
  isAmbiguous: boolean
}

function collectInexact(origins: Map<number, Origin>, value: Json): void {
  if (typeof value !== 'object' || value === null) return
  if (!(value instanceof JsonNumber)) {
    for (const item of itemsOf(value)) collectInexact(origins, item)
    return
  }
  const double = value.valueOf()
  if (!isPassedOn(value, double)) return
  const known = origins.get(double)
  if (known === undefined) origins.set(double, value)
  else if (known === 'several' || known.text !== value.text) origins.set(double, 'several')
}

/** Not small whole numbers that are only written in another way than doubles are, nor those beyond their range. */
function isPassedOn({ text }: JsonNumber, double: number): boolean {
  if (!Number.isSafeInteger(double)) return Number.isFinite(double)
  return digitsOf(text) !== digitsOf(String(double))
}

/** The digits of a decimal without those that do not count, and the exponent of the last of them: equal for equal numbers. */
function digitsOf(text: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = DECIMAL.exec(text) ?? []
  const digits = `${whole}${fraction}`.replace(/^0+/, '')
  const counting = digits.replace(/0+$/, '')
  if (counting === '') return '0'
  return `${sign}${counting}e${Number(exponent) - fraction.length + digits.length - counting.length}`
}

/** A double of the input beside an inexact number that is the same. */
function collectExact(origins: Map<number, Origin>, value: Json): void {
  if (typeof value === 'number') {
    if (origins.has(value)) origins.set(value, 'several')
  } else if (typeof value === 'object' && value !== null && !(value instanceof JsonNumber))
    for (const item of itemsOf(value)) collectExact(origins, item)
}

function itemsOf(value: JsonObject | readonly Json[]): readonly Json[] {
  return Array.isArray(value) ? value : Object.values(value)
}

function restore(restoring: Restoring, value: Json): Json {
  if (typeof value === 'number') {
    const origin = restoring.origins.get(value)
    if (origin !== 'several') return origin ?? value
    restoring.isAmbiguous ||= Number.isInteger(value)
    return value
  }
  if (Array.isArray(value)) return value.map((item) => restore(restoring, item))
  if (!isJsonObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, restore(restoring, item)]))
}
