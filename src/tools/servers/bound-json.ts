import { isJsonObject, type Json } from '../../foundation/json/index.ts'

/** A secret that begins before a cut is found in that many characters after it, in any encoding. */
const OVERLAP = 4_096

/**
 * The beginning of a value: a copy of at most that many characters as JSON, without brackets and escapes; the value itself when it
 * has no more. Texts are cut, later items and fields are left out. It visits no more than it copies, however large the value is.
 *
 * @param change applied to a text that is cut, with some of what follows, before it is cut
 */
export function boundJson<Value extends Json>(
  value: Value,
  charactersMax: number,
  change: (text: string) => string = (text) => text,
): Value {
  const budget: Budget = { left: charactersMax, change }
  const copy = bound(value, budget)
  return budget.left >= 0 ? value : (copy as Value)
}

interface Budget {
  left: number
  readonly change: (text: string) => string
}

function bound(value: Json, budget: Budget): Json {
  if (typeof value === 'string') {
    const room = Math.max(budget.left, 0)
    budget.left -= value.length
    return value.length <= room ? value : budget.change(value.slice(0, room + OVERLAP)).slice(0, room)
  }
  budget.left -= 1
  if (Array.isArray(value)) return boundItems(value, budget)
  return isJsonObject(value) ? boundFields(value, budget) : value
}

function boundItems(items: readonly Json[], budget: Budget): Json {
  const copy: Json[] = []
  for (const item of items) {
    if (budget.left < 0) break
    copy.push(bound(item, budget))
  }
  return copy
}

function boundFields(fields: { readonly [name: string]: Json }, budget: Budget): Json {
  const copy: Record<string, Json> = {}
  for (const name in fields) {
    if (budget.left < 0) break
    budget.left -= name.length
    copy[name] = bound(fields[name] ?? null, budget)
  }
  return copy
}
