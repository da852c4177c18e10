/**
 * Secrets at rest: envelope encryption (AES-256-GCM), the key ring, and the store of encrypted values by owner and subject; the
 * rotation of key encryption keys and of data keys.
 *
 * Lives here: data keys and secrets with their SQL. Never here: what a secret is for, API tokens (`tenancy`), or removing
 * secrets from texts (`redaction`).
 */

export { generateKeyRingText, type KeyRing, keyRingEntries, parseKeyRing } from './key-ring.ts'
export { KeyRingWatch } from './key-ring-watch.ts'
export { checkProcesses, type KeyUsage, type RetirementObstacle, readKeyUsages, retireKey } from './key-usage.ts'
export { rewrapDataKeys } from './rewrap-data-keys.ts'
export { continueRotation, dataKeyRotator, requestDataKeyRotation, rotationProgress } from './rotate-data-keys.ts'
export { resealed, sealedColumn } from './sealed-values.ts'
export {
  createSecretStore,
  dataKeyIdOf,
  findUnreadableKey,
  type ReplacedKey,
  type SealedValues,
  type SecretStore,
} from './secret-store.ts'
export { hasDataKeys } from './sql/data-key.ts'
export type { SealedColumn, SealedCount } from './sql/sealed-column.ts'
export {
  type EncryptedSecret,
  type SecretRef,
  type SecretsColumn,
  secretsFromColumn,
  secretsSql,
} from './sql/secret.ts'
