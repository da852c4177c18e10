import {
  deepMerge,
  FORBIDDEN_KEYS,
  formatDotPath,
  getAtPath,
  isJsonObject,
  type Json,
  type JsonObject,
} from '../../foundation/json/index.ts'
import { followBaseUrl } from './rebase-addresses.ts'

/** The document that a leaf of a resolved config comes from. */
type Layer = 'integration' | 'override'

/** A definition with an override merged over it. */
export interface ResolvedConfig {
  readonly config: JsonObject
  /** JSON path of every leaf (scalars, lists, empty objects) → its document. */
  readonly layers: Readonly<Record<string, Layer>>
}

/**
 * Merges an override over a definition: objects merge, lists and scalars replace, `null` removes.
 *
 * On a method, `null` is itself a setting (`pagination: null` turns paging off, a `null` header is not sent) and stays:
 * removing it would bring back the setting of the integration. Other addresses with the origin of a `base_url` that is
 * overridden follow it (`followBaseUrl`).
 */
export function resolveConfig(config: JsonObject, override: JsonObject): ResolvedConfig {
  const { below, above } = alignCredentials(config, override)
  const followed = followBaseUrl(below, above)
  const merged = keepMethodNulls(deepMerge(followed.config, above), above)
  const layers: Record<string, Layer> = {}
  collectLayers(layers, merged, above, [])
  for (const path of followed.moved) if (getAtPath(merged, path) !== undefined) layers[formatDotPath(path)] = 'override'
  return { config: merged, layers }
}

/**
 * Definition and override with credentials of the same shape: where one has a single `{format, config}` and the other a map,
 * the single one becomes a map of one entry under its format.
 */
export function alignCredentials(
  config: JsonObject,
  override: JsonObject,
): { readonly below: JsonObject; readonly above: JsonObject } {
  const shapes = [shapeOf(config.credentials), shapeOf(override.credentials)]
  if (!shapes.includes('map') || !shapes.includes('single')) return { below: config, above: override }
  return { below: withCredentialMap(config), above: withCredentialMap(override) }
}

function shapeOf(credentials: Json | undefined): 'single' | 'map' | undefined {
  if (!isJsonObject(credentials) || Object.keys(credentials).length === 0) return undefined
  const keys = Object.keys(credentials)
  if (!keys.includes('format') && !keys.includes('config')) return 'map'
  return typeof credentials.format === 'string' && keys.every((key) => key === 'format' || key === 'config')
    ? 'single'
    : undefined
}

function withCredentialMap(layer: JsonObject): JsonObject {
  const { credentials } = layer
  if (shapeOf(credentials) !== 'single' || !isJsonObject(credentials)) return layer
  const { format, ...rest } = credentials
  return { ...layer, credentials: { [String(format)]: rest } }
}

/** Method settings for which `null` is a value. */
const NULLABLE_SETTINGS: ReadonlySet<string> = new Set([
  'pagination',
  'authorization',
  'rate_limit',
  'retry',
  'error_expression',
])

/** Maps of a method in which a `null` entry is a value. */
const NULLABLE_ENTRIES: ReadonlySet<string> = new Set(['headers', 'query'])

function keepMethodNulls(merged: JsonObject, override: JsonObject): JsonObject {
  if (!isJsonObject(merged.resources) || !isJsonObject(override.resources)) return merged
  const resources = mergeShared(merged.resources, override.resources, (methods, changes) =>
    mergeShared(methods, changes, (method, change) => {
      const settings = pickNulls(change, NULLABLE_SETTINGS)
      const entries = mergeShared(method, change, (map, changed, key) =>
        NULLABLE_ENTRIES.has(key) ? { ...map, ...pickNulls(changed, undefined) } : map,
      )
      return { ...entries, ...settings }
    }),
  )
  return { ...merged, resources }
}

/** Merges the entries that are objects on both sides; all others stay. */
function mergeShared(
  base: JsonObject,
  change: JsonObject,
  merge: (below: JsonObject, above: JsonObject, key: string) => JsonObject,
): JsonObject {
  const shared = Object.entries(change).flatMap(([key, above]) => {
    const below = Object.hasOwn(base, key) ? base[key] : undefined
    return isJsonObject(below) && isJsonObject(above) ? [[key, merge(below, above, key)] as const] : []
  })
  return shared.length === 0 ? base : { ...base, ...Object.fromEntries(shared) }
}

function pickNulls(change: JsonObject, names: ReadonlySet<string> | undefined): JsonObject {
  const entries = Object.entries(change).filter(
    ([key, value]) => value === null && !FORBIDDEN_KEYS.has(key) && (names === undefined || names.has(key)),
  )
  return Object.fromEntries(entries)
}

function collectLayers(
  layers: Record<string, Layer>,
  value: Json,
  above: Json | undefined,
  path: readonly string[],
): void {
  if (isJsonObject(value) && Object.keys(value).length > 0) {
    const over = isJsonObject(above) ? above : {}
    for (const [key, item] of Object.entries(value))
      collectLayers(layers, item, Object.hasOwn(over, key) ? over[key] : undefined, [...path, key])
  } else if (path.length > 0) {
    layers[formatDotPath(path)] = above === undefined ? 'integration' : 'override'
  }
}
