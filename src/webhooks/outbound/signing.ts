import { createHmac, createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Db } from '../../foundation/database/index.ts'
import type { SecretRef, SecretStore } from '../../foundation/secrets/index.ts'

/** The store of signing secrets. */
export type SigningSecretStore = Pick<SecretStore, 'put' | 'get' | 'remove'>

/** One secret, and until when it signs. */
interface WebhookSigningKey {
  readonly secret: string
  /** RFC 3339; `null` for the newest, which does not expire. */
  readonly expires_at: string | null
}

/**
 * Oldest secrets that a request may be signed with, in milliseconds since they were asked for: what is older is read again. So
 * that after `ROTATION_SETTLE_MS` every process signs with the new secret, without a statement per delivery.
 */
export const SECRETS_AGE_MAX_MS = 500
/** From the commit of a rotation to its answer: `SECRETS_AGE_MAX_MS`, and as long again for what was signed to arrive. */
export const ROTATION_SETTLE_MS = 2 * SECRETS_AGE_MAX_MS
/** How long the previous secret still signs after a rotation. */
const ROTATION_OVERLAP_MS = 24 * 60 * 60 * 1000
/** More rotations within the overlap drop the oldest secret early: every secret costs a signature per delivery. */
const SIGNING_KEYS_MAX = 5
/** One encrypted value contains the whole list, so that a rotation replaces it in one write. */
const SECRET_NAME = 'signing_keys'

/** The secret reference of a webhook. */
export function signingSecretRef(environmentId: string, webhookId: string): SecretRef {
  return { ownerId: environmentId, subjectType: 'webhook', subjectId: webhookId }
}

/** Stores the first secret of a webhook and returns it, for the one response that shows it. */
export async function createSigningKey(store: SigningSecretStore, tx: Db, ref: SecretRef): Promise<string> {
  const secret = newSigningSecret()
  await writeKeys(store, tx, ref, [{ secret, expires_at: null }])
  return secret
}

/**
 * Adds a new secret and returns it; the ones before it sign too for `ROTATION_OVERLAP_MS`.
 *
 * The caller holds the lock on the webhook's row, so that concurrent rotations do not lose a secret.
 */
export async function rotateSigningKey(store: SigningSecretStore, tx: Db, ref: SecretRef, now: Date): Promise<string> {
  const secret = newSigningSecret()
  const expires = new Date(now.getTime() + ROTATION_OVERLAP_MS).toISOString()
  const older = (await readKeys(store, tx, ref))
    .filter((key) => isValid(key, now))
    .map((key) => ({ secret: key.secret, expires_at: key.expires_at ?? expires }))
  await writeKeys(store, tx, ref, [{ secret, expires_at: null }, ...older].slice(0, SIGNING_KEYS_MAX))
  return secret
}

/** The secrets that sign at `now`, newest first. @param values the secrets of the webhook, by name */
export function validSecrets(values: Readonly<Record<string, string>>, now: Date): readonly string[] {
  return parseKeys(values)
    .filter((key) => isValid(key, now))
    .map(({ secret }) => secret)
}

function isValid({ expires_at }: WebhookSigningKey, now: Date): boolean {
  return expires_at === null || Date.parse(expires_at) > now.getTime()
}

async function readKeys(store: SigningSecretStore, tx: Db, ref: SecretRef): Promise<readonly WebhookSigningKey[]> {
  return parseKeys(await store.get(tx, ref))
}

function parseKeys({ [SECRET_NAME]: text }: Readonly<Record<string, string>>): readonly WebhookSigningKey[] {
  return text === undefined ? [] : JSON.parse(text)
}

async function writeKeys(store: SigningSecretStore, tx: Db, ref: SecretRef, keys: readonly WebhookSigningKey[]) {
  await store.put(tx, ref, { [SECRET_NAME]: JSON.stringify(keys) })
}

/** Random bytes of a secret; Standard Webhooks requires 24 to 64. */
const SECRET_BYTES = 32
const SECRET_PREFIX = 'whsec_'

/** What is signed. The id and the time are also headers, so that a receiver can detect replays. */
export interface SignedContent {
  /** Contains no `.`, which separates the parts of the signed text. */
  readonly id: string
  /** Time of the attempt, not of the event: receivers reject old timestamps. */
  readonly timestampSeconds: number
  /** Exactly the bytes that are sent. */
  readonly body: Uint8Array
}

/** A random signing secret in the format of Standard Webhooks: `whsec_` and base64. */
export function newSigningSecret(): string {
  return SECRET_PREFIX + randomBytes(SECRET_BYTES).toString('base64')
}

/**
 * The three headers of Standard Webhooks 1.0.0, one `v1` signature per secret.
 *
 * Several secrets are valid during a rotation; a receiver accepts the delivery when one of the signatures, which are separated
 * by spaces, matches the secret it knows.
 */
export function signatureHeaders(content: SignedContent, secrets: readonly string[]): Record<string, string> {
  return {
    'webhook-id': content.id,
    'webhook-timestamp': String(content.timestampSeconds),
    'webhook-signature': secrets.map((secret) => `v1,${sign(content, secret)}`).join(' '),
  }
}

/** Keys by secret: making one takes longer than a signature. */
const signingKeys = new LRUCache<string, KeyObject>({ max: 1_000 })

function signingKey(secret: string): KeyObject {
  const known = signingKeys.get(secret)
  if (known !== undefined) return known
  const key = createSecretKey(Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64'))
  signingKeys.set(secret, key)
  return key
}

function sign({ id, timestampSeconds, body }: SignedContent, secret: string): string {
  return createHmac('sha256', signingKey(secret)).update(`${id}.${timestampSeconds}.`).update(body).digest('base64')
}

/** A further signature header, for receivers that verify the older scheme; named by how the digest is written. */
export type WebhookCompatibility = 'none' | 'single_header_base64' | 'single_header_hex'

const SINGLE_SIGNATURE_HEADER = 'x-truto-signature'

/**
 * The signature header of an older scheme: `format=sha256,v=` and the HMAC-SHA256 of the body alone, keyed with the newest secret
 * as its text; empty for `none`. It signs neither id nor time and knows no rotation: it is for receivers that change over to Standard Webhooks.
 */
export function singleSignatureHeader(
  compatibility: WebhookCompatibility,
  { body }: SignedContent,
  [newest = '']: readonly string[],
): Record<string, string> {
  if (compatibility === 'none') return {}
  const encoding = compatibility === 'single_header_hex' ? 'hex' : 'base64'
  const digest = createHmac('sha256', newest).update(body).digest(encoding)
  return { [SINGLE_SIGNATURE_HEADER]: `format=sha256,v=${digest}` }
}
