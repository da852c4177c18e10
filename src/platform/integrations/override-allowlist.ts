import { readsEnvironment } from '../../engine/expressions/index.ts'
import type { Violation } from '../../foundation/base/index.ts'
import {
  type DotPath,
  formatDotPath,
  getAtPath,
  isJsonObject,
  type Json,
  type JsonObject,
} from '../../foundation/json/index.ts'
import { storedSecretNames } from './stored-config.ts'

/** Wildcard: any key. */
const ANY = '*'

/** Allowed settings with expressions, as long as these read no environment variables: they are the owner's too. */
const ALLOWED_EXPRESSIONS = ['rate_limit', 'error_expression'] as const

/**
 * The settings that another team's override may change while the owner's config holds secrets: none that decides where a
 * request goes or what it contains. An allowlist, so that a new setting is not allowed by default.
 */
const ALLOWED_OVERRIDE_PATHS: readonly DotPath[] = [
  ['$schema'],
  ['label'],
  ['logo'],
  ['icon'],
  ['description'],
  ['tags'],
  ['tool_tags'],
  ['environment_variables'],
  ['query_array_format'],
  ...ALLOWED_EXPRESSIONS.map((name) => [name]),
  ['retry'],
  ['budget'],
  ['concurrency'],
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
  return leafPaths(override, []).filter(
    (path) => !ALLOWED_OVERRIDE_PATHS.some((allowed) => startsWith(path, allowed)) || readsVariables(override, path),
  )
}

/** Whether it is an expression that could return a variable of the owner's as the body of a response. */
function readsVariables(override: JsonObject, path: DotPath): boolean {
  const value = getAtPath(override, path)
  return ALLOWED_EXPRESSIONS.some((name) => name === path[0]) && typeof value === 'string' && readsEnvironment(value)
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
