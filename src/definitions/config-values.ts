import { type DotPath, getAtPath, isJsonNumber, isJsonObject, type Json, type JsonObject } from '../base/index.ts'
import { findTemplateProblem, listPlaceholderPaths } from '../expressions/index.ts'
import { resolvedSchema } from './config-schema.ts'
import { writePath } from './findings.ts'
import { listFields } from './schema-walk.ts'

/** An address written out in a config. */
export interface Address {
  /** JSON path of the setting. */
  readonly path: string
  readonly url: string
}

/**
 * The addresses that calls would go to, as far as they can be judged before a call: those whose text has no placeholder.
 *
 * The config need not be valid; what is not a text is skipped.
 *
 * @param prefix of the reported paths, e.g. `override`
 */
export function listAddresses(config: JsonObject, prefix: string): Address[] {
  return listFields(resolvedSchema, config).flatMap(({ role, value, path }) =>
    role.kind === 'url' && typeof value === 'string' && isLiteralAddress(value)
      ? [{ path: writePath(prefix, path), url: value }]
      : [],
  )
}

function isLiteralAddress(text: string): boolean {
  return findTemplateProblem(text) === undefined && listPlaceholderPaths(text).length === 0
}

/** Names under which people keep secrets: variables, headers, parameters. */
const SECRET_NAME =
  /secret|token(?!_?(?:path|host|url))|password|passwd|private_?key|api[-_]?key|access[-_]?key|^(?:proxy-)?authorization$|^cookie$/i

/**
 * The leaves of a config, or of an override, that are credential material and are stored encrypted and shown masked.
 *
 * These are: client secrets, literal tokens, keys and passwords in credentials, authorization and signature settings;
 * literal headers and parameters whose name says secret; environment variables whose name does. A text with a placeholder
 * is not a secret, it only points at one. The config need not be valid.
 */
export function secretPaths(config: JsonObject): DotPath[] {
  const marked = listFields(resolvedSchema, config).flatMap(({ role, value, path }) =>
    role.kind === 'template' ? secretLeaves(value, path, role.secret) : [],
  )
  const variables = variableLeaves(config.environment_variables ?? null, ['environment_variables'], false)
  return [...marked, ...variables]
}

/** The texts of those leaves. */
export function secretTexts(config: JsonObject): string[] {
  const values = secretPaths(config).map((path) => getAtPath(config, path))
  return values.flatMap((value) => (typeof value === 'string' || isJsonNumber(value) ? [String(value)] : []))
}

function secretLeaves(value: Json, path: DotPath, isSecret: boolean): DotPath[] {
  if (typeof value === 'string') return (isSecret || hasSecretName(path)) && isLiteralSecret(value) ? [path] : []
  return children(value, path).flatMap(([item, at]) => secretLeaves(item, at, isSecret))
}

/** Everything below a secret name is secret, whatever its type, `null` and empty texts aside. */
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
  return typeof name === 'string' && SECRET_NAME.test(name)
}

function isLiteralSecret(text: string): boolean {
  return text !== '' && (findTemplateProblem(text) !== undefined || listPlaceholderPaths(text).length === 0)
}
