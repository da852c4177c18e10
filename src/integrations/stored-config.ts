import { invalidFields, type JsonObject } from '../base/index.ts'
import { secretPaths } from '../definition/index.ts'
import type { SecretRef, SecretStore, Tx } from '../storage/index.ts'
import { separateSecrets, storedSecretNames } from './config-secrets.ts'

/** A checked config ready to be stored: its masked form, and what happens to the secrets beside it. */
export interface ConfigToStore {
  readonly masked: JsonObject
  /** Stores the secrets that were given and removes those whose places are gone. */
  storeSecrets(tx: Tx, ref: SecretRef): Promise<void>
}

/**
 * Takes the secrets out of a checked config.
 *
 * @param before what is stored so far, masked; absent for a new one. The mask in a place of one of its secrets keeps that
 * secret.
 * @param path prefix of reported fields
 * @throws Failure SECRET_MASKED with every mask that stands where no secret is stored
 */
export function prepareConfig(
  secrets: Pick<SecretStore, 'put' | 'remove'>,
  config: JsonObject,
  before: JsonObject | undefined,
  path: string,
): ConfigToStore {
  const stored = before === undefined ? [] : storedSecretNames(before)
  const { masked, given, kept, violations } = separateSecrets(config, secretPaths(config), stored, path)
  if (violations.length > 0) throw invalidFields(violations, 'SECRET_MASKED')
  const keptNames = new Set(kept)
  const gone = stored.filter((name) => !keptNames.has(name) && !Object.hasOwn(given, name))
  return {
    masked,
    async storeSecrets(tx, ref) {
      if (gone.length > 0) await secrets.remove(tx, ref, gone)
      await secrets.put(tx, ref, given)
    },
  }
}
