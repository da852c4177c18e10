/**
 * Keys and tokens: sealing with AES-256-GCM, the ring of key encryption keys, API tokens, redaction of texts.
 *
 * Nothing here stores anything or knows what a secret belongs to; `storage/secrets.ts` does.
 */
export { decrypt, encrypt } from './envelope.ts'
export { generateKeyRingText, type KeyRing, parseKeyRing } from './key-ring.ts'
export { Redactor, SECRET_MASK } from './redaction.ts'
export { chosenToken, hashToken, type MintedToken, mintToken } from './token.ts'
