import {
  deepMerge,
  FORBIDDEN_KEYS,
  formatDotPath,
  isJsonObject,
  type Json,
  type JsonObject,
} from '../../foundation/json/index.ts'
import type { MappingLayer, MergedMapping } from './mapping.ts'

/** One part of a mapping: of all methods of a resource or of one, in a layer. */
export interface MappingPart {
  readonly layer: MappingLayer
  readonly config: JsonObject
}

/**
 * Merges the parts of a mapping, lowest first: objects merge, lists, texts and scalars replace, `null` removes. A leaf's layer
 * is that of the last part that sets it.
 */
export function mergeMappings(parts: readonly MappingPart[]): MergedMapping {
  let config: JsonObject = {}
  const layers = new Map<string, MappingLayer>()
  for (const part of parts) {
    config = deepMerge(config, part.config)
    collectLayers(layers, part.config, part.layer, [])
  }
  return { config, layers: onlyLeaves(layers, config) }
}

function collectLayers(
  layers: Map<string, MappingLayer>,
  value: Json,
  layer: MappingLayer,
  path: readonly string[],
): void {
  if (isJsonObject(value) && Object.keys(value).length > 0) {
    for (const [key, item] of Object.entries(value))
      if (!FORBIDDEN_KEYS.has(key)) collectLayers(layers, item, layer, [...path, key])
  } else if (path.length > 0) layers.set(formatDotPath(path), layer)
}

/** The layers of leaves that are left: others were removed or replaced by an object or a text. */
function onlyLeaves(layers: ReadonlyMap<string, MappingLayer>, config: JsonObject): ReadonlyMap<string, MappingLayer> {
  const kept = new Map<string, MappingLayer>()
  const visit = (value: Json, path: readonly string[]): void => {
    if (isJsonObject(value) && Object.keys(value).length > 0) {
      for (const [key, item] of Object.entries(value)) visit(item, [...path, key])
      return
    }
    const name = formatDotPath(path)
    const layer = layers.get(name)
    if (layer !== undefined) kept.set(name, layer)
  }
  visit(config, [])
  return kept
}
