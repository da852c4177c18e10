import { type MappingPart, type MergedMapping, mergeMappings } from '../../engine/unified/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import type { StoredLayer } from './sql/effective.ts'

/** Settings of all methods of a resource are stored under this method. */
export const ANY_METHOD = '*'

/** A part of a mapping, and what it is for. */
export interface ResourcePart extends MappingPart {
  readonly resource: string
  readonly method: string
}

/**
 * The parts of all mappings of a model for an integration, in any order.
 *
 * @param shipped the shipped mapping: `{resources: {<resource>: {<method or *>: config}}}`
 */
export function listParts(shipped: JsonObject, layers: readonly StoredLayer[]): readonly ResourcePart[] {
  const ofFile = entriesOf(shipped.resources).flatMap(([resource, methods]) =>
    entriesOf(methods).flatMap(([method, config]) =>
      isJsonObject(config) ? [{ layer: 'shipped' as const, resource, method, config }] : [],
    ),
  )
  const ofRows = layers.flatMap(({ kind, resource, method, config }) =>
    kind === 'model' ? [] : [{ layer: kind, resource, method, config }],
  )
  return [...ofFile, ...ofRows]
}

/** The merged mappings of a resource by method: those of which some layer says what they call. */
export function mergeMethods(parts: readonly ResourcePart[], resource: string): ReadonlyMap<string, MergedMapping> {
  const ofResource = parts.filter((part) => part.resource === resource)
  const merged = listMethods(ofResource).map((name) => [name, mergeMethod(ofResource, name)] as const)
  return new Map(merged.flatMap(([name, mapping]) => (mapping === undefined ? [] : [[name, mapping]])))
}

/** The methods that some part of a resource is for. */
export function listMethods(parts: readonly ResourcePart[]): readonly string[] {
  return [...new Set(parts.map(({ method }) => method).filter((method) => method !== ANY_METHOD))]
}

/** The merged mapping of one method of the resource of all parts; `undefined` when no layer says what it calls. */
export function mergeMethod(parts: readonly ResourcePart[], method: string): MergedMapping | undefined {
  const own = partsOfMethod(parts, method)
  if (!own.some((part) => part.method === method && method !== ANY_METHOD)) return undefined
  const merged = mergeMappings(own)
  return merged.config.resource === undefined || merged.config.method === undefined ? undefined : merged
}

const LAYERS = ['shipped', 'base', 'environment', 'account'] as const

/** Of each layer first what all methods share, then what the method has of its own. */
function partsOfMethod(parts: readonly ResourcePart[], name: string): readonly ResourcePart[] {
  return LAYERS.flatMap((layer) => [
    ...parts.filter((part) => part.layer === layer && part.method === ANY_METHOD),
    ...parts.filter((part) => part.layer === layer && part.method === name),
  ])
}

function entriesOf(value: Json | undefined): readonly (readonly [string, Json])[] {
  return isJsonObject(value) ? Object.entries(value) : []
}
