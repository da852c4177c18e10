/**
 * Keys and tokens: sealing with AES-256-GCM, the ring of key encryption keys, API tokens, redaction of texts.
 *
 * Nothing here stores anything or knows what a secret belongs to; `storage/secrets.ts` does.
 */

export { generateKeyRingText, type KeyRing, parseKeyRing } from './key-ring.ts'
export { createSecretStore, findUnreadableKey, type SecretStore } from './secret-store.ts'
export type { EncryptedSecret, SecretRef } from './sql.ts'
