import { createPublicKey, type KeyObject } from 'node:crypto'

/** Weaker RSA keys are not taken: their private halves can be computed. */
const RSA_BITS_MIN = 2048
const ED25519_KEY_BYTES = 32

/**
 * A public key as senders publish it: PEM (line breaks may be written as `\n`), a JWK, base64 of the DER (SPKI), or the bare
 * 32 bytes of an Ed25519 key in hexadecimal or base64. `undefined` when it is none of these, or too weak.
 */
export function readPublicKey(text: string): KeyObject | undefined {
  try {
    const key = parseKey(text.trim())
    const bits = key.asymmetricKeyDetails?.modulusLength
    return bits !== undefined && bits < RSA_BITS_MIN ? undefined : key
  } catch {
    return undefined
  }
}

function parseKey(text: string): KeyObject {
  if (text.startsWith('-----BEGIN')) return createPublicKey(text.replaceAll('\\n', '\n'))
  if (text.startsWith('{')) return createPublicKey({ key: JSON.parse(text), format: 'jwk' })
  const bytes = Buffer.from(text, /^[0-9a-f]{64}$/i.test(text) ? 'hex' : 'base64')
  if (bytes.byteLength !== ED25519_KEY_BYTES) return createPublicKey({ key: bytes, format: 'der', type: 'spki' })
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: bytes.toString('base64url') }, format: 'jwk' })
}
