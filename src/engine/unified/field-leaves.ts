import { type DotPath, isJsonObject, type Json } from '../../foundation/json/index.ts'

/** A leaf of a field map: an expression, or a constant. */
export interface MapLeaf {
  readonly path: DotPath
  readonly value: Json
}

/** The leaves of a field map, lists entered; of a map that is one expression that expression. */
export function fieldLeaves(map: Json | undefined, path: DotPath = []): readonly MapLeaf[] {
  if (map === undefined || map === null) return []
  if (Array.isArray(map)) return map.flatMap((item: Json, index) => fieldLeaves(item, [...path, index]))
  if (!isJsonObject(map)) return [{ path, value: map }]
  return Object.entries(map).flatMap(([key, item]) => fieldLeaves(item, [...path, key]))
}

/** The expressions of a field map. */
export function fieldExpressions(map: Json | undefined, path: DotPath = []): readonly (MapLeaf & { value: string })[] {
  return fieldLeaves(map, path).flatMap(({ value, path: at }) =>
    typeof value === 'string' ? [{ value, path: at }] : [],
  )
}
