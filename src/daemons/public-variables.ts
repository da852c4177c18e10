import { isJsonObject, type Json, type JsonObject } from '../base/index.ts'
import { secretPaths } from '../definition/index.ts'

/** The environment variables of a definition that are no secrets, for those who may read everything else. */
export function publicVariables(variables: JsonObject): JsonObject {
  const root = 'environment_variables'
  const hidden = new Set(secretPaths({ [root]: variables }).map((path) => JSON.stringify(path)))
  const shown = withoutPaths(variables, [root], hidden)
  return isJsonObject(shown) ? shown : {}
}

function withoutPaths(value: Json, path: readonly (string | number)[], hidden: ReadonlySet<string>): Json | undefined {
  if (hidden.has(JSON.stringify(path))) return undefined
  if (Array.isArray(value))
    return value.map((item: Json, index) => withoutPaths(item, [...path, index], hidden) ?? null)
  if (!isJsonObject(value)) return value
  const entries = Object.entries(value).map(([key, item]) => [key, withoutPaths(item, [...path, key], hidden)] as const)
  return Object.fromEntries(entries.filter((entry): entry is readonly [string, Json] => entry[1] !== undefined))
}
