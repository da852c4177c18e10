import type { SecretRef, Secrets, Tx } from '../storage/index.ts'
import { newSigningSecret } from './outbound/signature.ts'

/** Where signing secrets are kept, encrypted. */
export type SigningSecretStore = Pick<Secrets, 'put' | 'get' | 'remove'>

/** One secret and until when receivers may still verify with it. */
interface SigningKey {
  readonly secret: string
  /** RFC 3339; `null` for the newest, which does not expire. */
  readonly expires_at: string | null
}

/** How long the previous secret goes on signing after a rotation. */
const OVERLAP_MS = 24 * 60 * 60 * 1000
/** Rotations within the overlap beyond this end the oldest secret early; every key costs a signature per delivery. */
const KEYS_MAX = 5
/** One sealed value holds the whole list, so that a rotation replaces it in one write. */
const NAME = 'signing_keys'

/** The secret reference of a webhook. */
export function signingSecretRef(environmentId: string, webhookId: string): SecretRef {
  return { ownerId: environmentId, subjectType: 'webhook', subjectId: webhookId }
}

/** Stores a first secret and returns it: the only moment it is readable outside a delivery. */
export async function createSigningKey(store: SigningSecretStore, tx: Tx, ref: SecretRef): Promise<string> {
  const secret = newSigningSecret()
  await write(store, tx, ref, [{ secret, expires_at: null }])
  return secret
}

/**
 * Puts a new secret first and returns it; those before it sign beside it for `OVERLAP_MS` more.
 *
 * The caller holds the webhook's row, so that two rotations at once do not lose one another's key.
 */
export async function rotateSigningKey(store: SigningSecretStore, tx: Tx, ref: SecretRef, now: Date): Promise<string> {
  const secret = newSigningSecret()
  const expires = new Date(now.getTime() + OVERLAP_MS).toISOString()
  const older = (await read(store, tx, ref))
    .filter((key) => isValid(key, now))
    .map((key) => ({ secret: key.secret, expires_at: key.expires_at ?? expires }))
  await write(store, tx, ref, [{ secret, expires_at: null }, ...older].slice(0, KEYS_MAX))
  return secret
}

/** Every secret that signs at this moment, newest first; empty when the webhook has none. */
export async function signingSecrets(
  store: SigningSecretStore,
  tx: Tx,
  ref: SecretRef,
  now: Date,
): Promise<readonly string[]> {
  return (await read(store, tx, ref)).filter((key) => isValid(key, now)).map(({ secret }) => secret)
}

function isValid({ expires_at }: SigningKey, now: Date): boolean {
  return expires_at === null || Date.parse(expires_at) > now.getTime()
}

async function read(store: SigningSecretStore, tx: Tx, ref: SecretRef): Promise<readonly SigningKey[]> {
  const { [NAME]: text } = await store.get(tx, ref)
  return text === undefined ? [] : JSON.parse(text)
}

async function write(store: SigningSecretStore, tx: Tx, ref: SecretRef, keys: readonly SigningKey[]) {
  await store.put(tx, ref, { [NAME]: JSON.stringify(keys) })
}
