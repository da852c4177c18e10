import type { Violation } from '../../foundation/base/index.ts'
import {
  type DotPath,
  formatDotPath,
  getAtPath,
  isJsonNumber,
  isJsonObject,
  type Json,
  type JsonObject,
} from '../../foundation/json/index.ts'
import { isSecretName } from '../expressions/environment-variables.ts'
import { findTemplateProblem, listPlaceholderPaths } from '../expressions/template.ts'
import { resolvedSchema } from './config-schema.ts'
import { listFields } from './schema-walk.ts'

/**
 * A finding for every URL that calls would go to and may not, as far as they are known before a call: those without
 * placeholders. The config need not be valid; values that are not texts are skipped.
 *
 * @param prefix of the reported fields, e.g. `override`
 * @param findViolation why a URL may not be called, worded to follow the field's name
 */
export function findAddressViolations(
  config: JsonObject,
  prefix: string,
  findViolation: (url: string) => string | undefined,
): Violation[] {
  return listFields(resolvedSchema, config).flatMap(({ role, value, path }) => {
    if (role.kind !== 'url' || typeof value !== 'string' || !isLiteralAddress(value)) return []
    const description = findViolation(value)
    return description === undefined
      ? []
      : [{ field: formatDotPath(path, prefix), description, rule: 'url.not_allowed' }]
  })
}

function isLiteralAddress(text: string): boolean {
  return findTemplateProblem(text) === undefined && listPlaceholderPaths(text).length === 0
}

/**
 * The leaves of a config or override that are credential material: stored encrypted, shown masked.
 *
 * These are client secrets, literal tokens, keys and passwords in credentials, authorization and signature settings; literal
 * headers, parameters and environment variables with the name of a secret. A text with a placeholder is not a secret but a
 * reference to one. The config need not be valid.
 */
export function secretPaths(config: JsonObject): DotPath[] {
  const marked = listFields(resolvedSchema, config).flatMap(({ role, value, path }) =>
    role.kind === 'template' ? secretLeaves(value, path, role.secret) : [],
  )
  const variables = variableLeaves(config.environment_variables ?? null, ['environment_variables'], false)
  return [...marked, ...variables]
}

/** The values at `secretPaths`, as texts. */
export function secretTexts(config: JsonObject): string[] {
  const values = secretPaths(config).map((path) => getAtPath(config, path))
  return values.flatMap((value) => (typeof value === 'string' || isJsonNumber(value) ? [String(value)] : []))
}

function secretLeaves(value: Json, path: DotPath, isSecret: boolean): DotPath[] {
  if (typeof value === 'string') return (isSecret || hasSecretName(path)) && isLiteralSecret(value) ? [path] : []
  return children(value, path).flatMap(([item, at]) => secretLeaves(item, at, isSecret))
}

/** All leaves below a secret name, of any type, except `null` and empty texts. */
function variableLeaves(value: Json, path: DotPath, isSecret: boolean): DotPath[] {
  if (isJsonObject(value) || Array.isArray(value))
    return children(value, path).flatMap(([item, at]) => variableLeaves(item, at, isSecret || hasSecretName(at)))
  return isSecret && value !== null && value !== '' ? [path] : []
}

function children(value: Json, path: DotPath): [Json, DotPath][] {
  if (Array.isArray(value)) return value.map((item: Json, index) => [item, [...path, index]])
  return isJsonObject(value) ? Object.entries(value).map(([key, item]) => [item, [...path, key]]) : []
}

function hasSecretName(path: DotPath): boolean {
  const name = path.findLast((step) => typeof step === 'string')
  return typeof name === 'string' && isSecretName(name)
}

function isLiteralSecret(text: string): boolean {
  return text !== '' && (findTemplateProblem(text) !== undefined || listPlaceholderPaths(text).length === 0)
}

/** The environment variables of a definition without secrets: what a sync job may read of them, whichever process runs it. */
export function publicVariables(variables: JsonObject): JsonObject {
  const root = 'environment_variables'
  const secrets = new Set(secretPaths({ [root]: variables }).map((path) => JSON.stringify(path)))
  const result = withoutPaths(variables, [root], secrets)
  return isJsonObject(result) ? result : {}
}

function withoutPaths(value: Json, path: readonly (string | number)[], secrets: ReadonlySet<string>): Json | undefined {
  if (secrets.has(JSON.stringify(path))) return undefined
  if (Array.isArray(value))
    return value.map((item: Json, index) => withoutPaths(item, [...path, index], secrets) ?? null)
  if (!isJsonObject(value)) return value
  const entries = Object.entries(value).map(
    ([key, item]) => [key, withoutPaths(item, [...path, key], secrets)] as const,
  )
  return Object.fromEntries(entries.filter((entry): entry is readonly [string, Json] => entry[1] !== undefined))
}
