import { createHmac, randomBytes } from 'node:crypto'

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
