import { createHmac, randomBytes } from 'node:crypto'
import type { Tx } from '../database/index.ts'
import type { SecretRef, SecretStore } from '../secrets/index.ts'

/** Where signing secrets are kept, encrypted. */
export type SigningSecretStore = Pick<SecretStore, 'put' | 'get' | 'remove'>

/** One secret and until when receivers may still verify with it. */
interface WebhookSigningKey {
  readonly secret: string
  /** RFC 3339; `null` for the newest, which does not expire. */
  readonly expires_at: string | null
}

/** How long the previous secret goes on signing after a rotation. */
const ROTATION_OVERLAP_MS = 24 * 60 * 60 * 1000
/** Rotations within the overlap beyond this end the oldest secret early; every key costs a signature per delivery. */
const SIGNING_KEYS_MAX = 5
/** One sealed value holds the whole list, so that a rotation replaces it in one write. */
const SECRET_NAME = 'signing_keys'

/** The secret reference of a webhook. */
export function signingSecretRef(environmentId: string, webhookId: string): SecretRef {
  return { ownerId: environmentId, subjectType: 'webhook', subjectId: webhookId }
}

/** Stores a first secret and returns it: the only moment it is readable outside a delivery. */
export async function createSigningKey(store: SigningSecretStore, tx: Tx, ref: SecretRef): Promise<string> {
  const secret = newSigningSecret()
  await writeKeys(store, tx, ref, [{ secret, expires_at: null }])
  return secret
}

/**
 * Puts a new secret first and returns it; those before it sign beside it for `OVERLAP_MS` more.
 *
 * The caller holds the webhook's row, so that two rotations at once do not lose one another's key.
 */
export async function rotateSigningKey(store: SigningSecretStore, tx: Tx, ref: SecretRef, now: Date): Promise<string> {
  const secret = newSigningSecret()
  const expires = new Date(now.getTime() + ROTATION_OVERLAP_MS).toISOString()
  const older = (await readKeys(store, tx, ref))
    .filter((key) => isValid(key, now))
    .map((key) => ({ secret: key.secret, expires_at: key.expires_at ?? expires }))
  await writeKeys(store, tx, ref, [{ secret, expires_at: null }, ...older].slice(0, SIGNING_KEYS_MAX))
  return secret
}

/** Every secret that signs at this moment, newest first; empty when the webhook has none. */
export async function validSigningSecrets(
  store: SigningSecretStore,
  tx: Tx,
  ref: SecretRef,
  now: Date,
): Promise<readonly string[]> {
  return (await readKeys(store, tx, ref)).filter((key) => isValid(key, now)).map(({ secret }) => secret)
}

function isValid({ expires_at }: WebhookSigningKey, now: Date): boolean {
  return expires_at === null || Date.parse(expires_at) > now.getTime()
}

async function readKeys(store: SigningSecretStore, tx: Tx, ref: SecretRef): Promise<readonly WebhookSigningKey[]> {
  const { [SECRET_NAME]: text } = await store.get(tx, ref)
  return text === undefined ? [] : JSON.parse(text)
}

async function writeKeys(store: SigningSecretStore, tx: Tx, ref: SecretRef, keys: readonly WebhookSigningKey[]) {
  await store.put(tx, ref, { [SECRET_NAME]: JSON.stringify(keys) })
}

/** Bytes of randomness in a secret; Standard Webhooks asks for 24 to 64. */
const SECRET_BYTES = 32
const SECRET_PREFIX = 'whsec_'

/** What is signed: the id and time travel in headers beside the body, so a receiver can refuse replays. */
export interface SignedContent {
  /** Must hold no `.`, which separates the parts of the signed text. */
  readonly id: string
  /** Time of the attempt, not of the event: receivers refuse old ones. */
  readonly timestampSeconds: number
  /** Exactly the bytes that are sent. */
  readonly body: Uint8Array
}

/** A fresh signing secret in the form receivers' libraries take: `whsec_` and base64. */
export function newSigningSecret(): string {
  return SECRET_PREFIX + randomBytes(SECRET_BYTES).toString('base64')
}

/**
 * The three headers of Standard Webhooks 1.0.0, one `v1` signature per secret.
 *
 * Several secrets are valid at once during a rotation; a receiver accepts the delivery when any of the signatures, which
 * are separated by blanks, matches the secret it knows.
 */
export function signatureHeaders(content: SignedContent, secrets: readonly string[]): Record<string, string> {
  return {
    'webhook-id': content.id,
    'webhook-timestamp': String(content.timestampSeconds),
    'webhook-signature': secrets.map((secret) => `v1,${sign(content, secret)}`).join(' '),
  }
}

function sign({ id, timestampSeconds, body }: SignedContent, secret: string): string {
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64')
  return createHmac('sha256', key).update(`${id}.${timestampSeconds}.`).update(body).digest('base64')
}
