import { isJsonObject, type Json, toDouble } from '../base/index.ts'

/** Truth as JSONata's boolean cast has it: empty texts, lists and objects, and no value, are false. */
export function isTruthy(value: Json | undefined): boolean {
  if (Array.isArray(value)) return value.some(isTruthy)
  if (isJsonObject(value)) return Object.keys(value).length > 0
  return Boolean(toDouble(value))
}
