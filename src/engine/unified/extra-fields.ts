import { formatDotPath, isJsonObject } from '../../foundation/json/index.ts'
import type { MappingLayer, MergedMapping } from './mapping.ts'
import type { FieldMap } from './mapping-schema.ts'

/** Layers that may map fields beyond the schema, which are kept. */
export const EXTENDING_LAYERS: ReadonlySet<MappingLayer | undefined> = new Set<MappingLayer>(['environment', 'account'])

/** What environments and accounts add to the fields of a schema. */
export interface ExtraFields {
  /** Dotted fields of the map that they set. */
  readonly fields: ReadonlySet<string>
  /** The whole map is one expression of theirs: all its keys are kept. */
  readonly keepsUnknown: boolean
}

/** The fields of a map that come from an environment or account. @param path of the map in the mapping: `response.fields` */
export function listExtraFields(map: FieldMap, layers: MergedMapping['layers'], path: string): ExtraFields {
  const fields = new Set<string>()
  const visit = (value: FieldMap | undefined, names: readonly string[]): void => {
    if (isJsonObject(value) && Object.keys(value).length > 0) {
      for (const [key, item] of Object.entries(value)) visit(item as FieldMap, [...names, key])
      return
    }
    if (names.length > 0 && EXTENDING_LAYERS.has(layers.get(formatDotPath(names, path)))) fields.add(names.join('.'))
  }
  visit(map, [])
  return { fields, keepsUnknown: EXTENDING_LAYERS.has(layers.get(path)) }
}
