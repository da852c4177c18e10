import { type DotPath, formatDotPath, isJsonObject, type Json, type JsonObject, type Violation } from '../base/index.ts'
import { storedSecretNames } from './stored-config.ts'

/** Wildcard: any key. */
const ANY = '*'

/**
 * The settings that another team's override may change while the owner's config holds secrets: none that decides where a
 * request goes or what it contains. An allowlist, so that a new setting is not allowed by default.
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
 * The paths of an override through which another team could have the owner's secrets sent to itself, such as a `base_url`
 * of its own. An override without such paths may be used with the owner's secrets.
 */
export function findSecretExfiltrationPaths(override: JsonObject): readonly DotPath[] {
  return leafPaths(override, []).filter((path) => !ALLOWED_OVERRIDE_PATHS.some((allowed) => startsWith(path, allowed)))
}

/** Violations of another team's override, when the config holds secrets of its owner. */
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
