import { type DotPath, formatDotPath, isJsonObject, type Json, type JsonObject, type Violation } from '../base/index.ts'
import { storedSecretNames } from './stored-config.ts'

/** Any key. */
const ANY = '*'

/**
 * What an override of another team may hold while the integration's owner keeps secrets in the config: nothing that decides
 * where a request goes or what is put into it. A list of what is harmless, so that a new setting is not.
 */
const ALLOWED_OVERRIDE_PATHS: readonly DotPath[] = [
  ['label'],
  ['logo'],
  ['icon'],
  ['description'],
  ['tags'],
  ['tool_tags'],
  ['environment_variables'],
  ['query_array_format'],
  ['rate_limit'],
  ['retry'],
  ['budget'],
  ['concurrency'],
  ['error_expression'],
  ...['client', 'scope', 'optional_scope', 'fields', 'documentation_link'].flatMap((key) => [
    ['credentials', 'config', key],
    ['credentials', ANY, 'config', key],
  ]),
  ['credentials', ANY, 'label'],
]

/**
 * The places of an override through which another team could have the owner's secrets sent to itself, such as a `base_url`
 * of its own. Without them the owner's secrets may be used.
 */
export function findSecretExfiltrationPaths(override: JsonObject): readonly DotPath[] {
  return leafPaths(override, []).filter(
    (path) => !ALLOWED_OVERRIDE_PATHS.some((harmless) => startsWith(path, harmless)),
  )
}

/** Findings about an override of another team, when the config holds secrets of its owner. */
export function checkSecretExfiltration(config: JsonObject, override: JsonObject, path: string): readonly Violation[] {
  if (storedSecretNames(config).length === 0) return []
  return findSecretExfiltrationPaths(override).map((at) => ({
    field: formatDotPath(at, path),
    description: "could send secrets of the integration's owner elsewhere: copy the integration to change this",
    rule: 'override.diverts_secrets',
  }))
}

function leafPaths(value: Json, path: DotPath): readonly DotPath[] {
  if (!isJsonObject(value)) return [path]
  return Object.entries(value).flatMap(([key, item]) => leafPaths(item, [...path, key]))
}

function startsWith(path: DotPath, start: DotPath): boolean {
  return path.length >= start.length && start.every((step, index) => step === ANY || step === path[index])
}
