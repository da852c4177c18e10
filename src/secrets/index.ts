/**
 * Secrets at rest: envelope encryption (AES-256-GCM), the key ring, and the store of encrypted values by owner and subject.
 *
 * Lives here: data keys and secrets with their SQL. Never here: what a secret is for, API tokens (`tenancy`), or removing
 * secrets from texts (`redaction`).
 */

export { generateKeyRingText, type KeyRing, parseKeyRing } from './key-ring.ts'
export { createSecretStore, findUnreadableKey, type SecretStore } from './secret-store.ts'
export { type EncryptedSecret, type SecretRef, type SecretsColumn, secretsFromColumn, secretsSql } from './sql.ts'
