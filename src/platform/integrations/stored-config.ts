import { secretPaths } from '../../engine/definitions/index.ts'
import { Failure, invalidFields, type Violation } from '../../foundation/base/index.ts'
import type { Db } from '../../foundation/database/index.ts'
import {
  type DotPath,
  formatDotPath,
  isJsonObject,
  type Json,
  type JsonObject,
  parseJson,
} from '../../foundation/json/index.ts'
import { SECRET_MASK } from '../../foundation/redaction/index.ts'
import type { SecretRef, SecretStore } from '../../foundation/secrets/index.ts'
import type { EnvironmentIntegrationRecord } from './sql/installations.ts'
import type { IntegrationRecord } from './sql/integrations.ts'

/** What storing integrations and installations needs. */
export interface IntegrationDeps {
  readonly secrets: Pick<SecretStore, 'get' | 'put' | 'remove'>
  readonly checkUrls: CheckUrls
}

/** A checked config ready to be stored. */
export interface ConfigToStore {
  /** The config with the mask in place of every secret. */
  readonly masked: JsonObject
  /** Its secrets that are no masks: JSON texts by name, which is their path. */
  readonly given: SeparatedConfig['given']
  /** Stores the secrets that were given and removes those whose paths are gone from the config. */
  storeSecrets(tx: Db, ref: SecretRef): Promise<void>
}

/**
 * Separates a checked config from its secrets.
 *
 * @param before the stored config, masked; absent for a new one. The mask at the path of one of its secrets keeps that secret.
 * @param path prefix of reported fields
 * @throws Failure SECRET_MASKED with every mask at a path where no secret is stored
 */
export function prepareConfig(
  secrets: IntegrationDeps['secrets'],
  config: JsonObject,
  before: JsonObject | undefined,
  path: string,
): ConfigToStore {
  const stored = before === undefined ? [] : storedSecretNames(before)
  const { masked, given, kept, violations } = separateSecrets(config, secretPaths(config), stored, path)
  if (violations.length > 0) throw invalidFields(violations, 'SECRET_MASKED')
  const keptNames = new Set(kept)
  const removed = stored.filter((name) => !keptNames.has(name) && !Object.hasOwn(given, name))
  return {
    masked,
    given,
    async storeSecrets(tx, ref) {
      if (removed.length > 0) await secrets.remove(tx, ref, removed)
      await secrets.put(tx, ref, given)
    },
  }
}

/** A config and its secrets, separated. */
export interface SeparatedConfig {
  /** What is stored and shown: the mask in place of every secret. */
  readonly masked: JsonObject
  /** Secrets that were given: JSON texts by `secretNameAt` their paths. */
  readonly given: Readonly<Record<string, string>>
  /** Names of stored secrets that stay, because the config has the mask at their paths. */
  readonly kept: readonly string[]
  /** Masks at paths where no secret is stored. */
  readonly violations: readonly Violation[]
}

/**
 * Separates a config from its secrets.
 *
 * @param secretPaths where credentials are in this config
 * @param stored names of the stored secrets: at their paths the mask means "unchanged"
 * @param path prefix of the reported fields; may be empty
 */
export function separateSecrets(
  config: JsonObject,
  secretPaths: readonly DotPath[],
  stored: readonly string[],
  path: string,
): SeparatedConfig {
  const secretNames = new Set(secretPaths.map(secretNameAt))
  const storedNames = new Set(stored)
  const given: Record<string, string> = {}
  const kept: string[] = []
  const violations: Violation[] = []
  const masked = replaceLeaves(config, [], (value, at) => {
    const name = secretNameAt(at)
    const isSecret = secretNames.has(name)
    if (value !== SECRET_MASK && !isSecret) return value
    if (value !== SECRET_MASK) given[name] = JSON.stringify(value)
    else if (isSecret && storedNames.has(name)) kept.push(name)
    else violations.push(maskViolation(formatDotPath(at, path)))
    return SECRET_MASK
  })
  return { masked: isJsonObject(masked) ? masked : {}, given, kept, violations }
}

/** Masks reported per config. */
const MASK_VIOLATIONS_MAX = 100

function maskViolation(field: string): Violation {
  const description = `is ${SECRET_MASK}, the mask of a secret, where no secret is stored: send the secret itself or leave it out`
  return { field, description, rule: 'secret.masked' }
}

/**
 * Puts secrets in place of their masks. A mask without a secret is left out, with its key: it must never be sent.
 *
 * @param secrets JSON texts by name, as `separateSecrets` returned them
 */
export function restoreSecrets(masked: JsonObject, secrets: Readonly<Record<string, string>>): JsonObject {
  const restored = replaceLeaves(masked, [], (value, at) => {
    if (value !== SECRET_MASK) return value
    const text = secrets[secretNameAt(at)]
    return text === undefined ? undefined : parseJson(text)
  })
  return isJsonObject(restored) ? restored : {}
}

/** Names of the secrets stored for a masked config: nothing but a secret is ever stored as the mask. */
export function storedSecretNames(masked: JsonObject): readonly string[] {
  return listMasks(masked, []).map(secretNameAt)
}

/** Paths of the secrets stored for a masked config. */
export function storedSecretPaths(masked: JsonObject): readonly DotPath[] {
  return listMasks(masked, [])
}

/** Secrets without those at some paths. @param secrets JSON texts by name */
export function withoutSecretsAt(
  secrets: Readonly<Record<string, string>>,
  paths: readonly DotPath[],
): Readonly<Record<string, string>> {
  const withheld = new Set(paths.map(secretNameAt))
  return Object.fromEntries(Object.entries(secrets).filter(([name]) => !withheld.has(name)))
}

/** Violations for the masks of a new config, which has no stored secrets. @param path prefix of the reported fields */
export function findMasks(config: JsonObject, path: string): readonly Violation[] {
  const masks = listMasks(config, []).slice(0, MASK_VIOLATIONS_MAX)
  return masks.map((at) => maskViolation(formatDotPath(at, path)))
}

/** Paths of the masks. */
function listMasks(value: Json, path: DotPath): DotPath[] {
  if (value === SECRET_MASK) return [path]
  const found: DotPath[] = []
  if (Array.isArray(value))
    for (const [index, item] of (value as readonly Json[]).entries()) {
      if (mayHoldMask(item)) found.push(...listMasks(item, [...path, index]))
    }
  else if (isJsonObject(value))
    for (const key in value) {
      const item = value[key] ?? null
      if (mayHoldMask(item)) found.push(...listMasks(item, [...path, key]))
    }
  return found
}

function mayHoldMask(value: Json): boolean {
  return value === SECRET_MASK || (typeof value === 'object' && value !== null)
}

/**
 * A copy of the value with every leaf (scalar, null, empty list or object) replaced; `undefined` removes the leaf.
 * Recursion is bounded by the depth limit of configs.
 */
function replaceLeaves(
  value: Json,
  path: DotPath,
  replace: (leaf: Json, path: DotPath) => Json | undefined,
): Json | undefined {
  if (Array.isArray(value) && value.length > 0) {
    const items: (Json | undefined)[] = value.map((item, index) => replaceLeaves(item, [...path, index], replace))
    return items.filter((item) => item !== undefined)
  }
  if (!isJsonObject(value) || Object.keys(value).length === 0) return replace(value, path)
  const entries = Object.entries(value).flatMap(([key, item]): [string, Json][] => {
    const replaced = replaceLeaves(item, [...path, key], replace)
    return replaced === undefined ? [] : [[key, replaced]]
  })
  return Object.fromEntries(entries)
}

/**
 * The name of the secret at a path: a JSON pointer (RFC 6901), which unlike a dotted path distinguishes `a.b` from a key
 * named `a.b`.
 */
function secretNameAt(path: DotPath): string {
  return path.map((step) => `/${escapeKey(String(step))}`).join('')
}

function escapeKey(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1')
}

/** An integration's own secrets belong to its team, whichever team installs it. */
export function integrationSecretRef({ id, teamId }: Pick<IntegrationRecord, 'id' | 'teamId'>): SecretRef {
  return { ownerId: teamId, subjectType: 'integration', subjectId: id }
}

/** The secrets of an installation's override belong to its environment. */
export function overrideSecretRef({
  id,
  environmentId,
}: Pick<EnvironmentIntegrationRecord, 'id' | 'environmentId'>): SecretRef {
  return { ownerId: environmentId, subjectType: 'environment_integration', subjectId: id }
}

/** The name is in use in the team; the holder is unknown when it was taken this moment. */
export function nameTaken(name: string, holderId: string | undefined): Failure {
  const message = `the team has an integration named ${name} already`
  const resource = holderId === undefined ? {} : { resource: { type: 'integration', id: holderId } }
  return new Failure('NAME_TAKEN', message, resource)
}

/** @throws Failure DEFINITION_INVALID with all violations, unless there are none */
export function assertValid(violations: readonly Violation[]): void {
  if (violations.length > 0) throw invalidFields(violations, 'DEFINITION_INVALID')
}

/**
 * Violations for the URLs of a config that outbound requests may not reach. URLs that begin with a placeholder are checked
 * at each call.
 *
 * @param path prefix of the reported fields
 */
type CheckUrls = (config: JsonObject, path: string) => readonly Violation[]

/** @throws Failure URL_NOT_ALLOWED with all violations, unless there are none */
export function assertUrlsAllowed(violations: readonly Violation[]): void {
  if (violations.length > 0) throw invalidFields(violations, 'URL_NOT_ALLOWED')
}
