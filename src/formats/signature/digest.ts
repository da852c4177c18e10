import { z } from 'zod'
import { type ByteEncoding, constantTimeEqual, normaliseEncoded } from './encoding.ts'
import { signedKeys, stringType } from './signed.ts'
import { invalid, VALID, type VerificationResult } from './verdict.ts'

/** The keys that `hmac` and `hash` share. */
export const digestKeys = {
  algorithm: z.enum(['sha1', 'sha256', 'sha512']).default('sha256').describe('Digest.'),
  string_type: stringType.default('hex'),
  ...signedKeys,
} as const

/** Whether one of the signatures that were sent is the digest that was computed. All are looked at. */
export function compareDigest(
  digest: Buffer,
  encoding: ByteEncoding,
  signatures: readonly string[],
): VerificationResult {
  const expected = normaliseEncoded(digest.toString(encoding), encoding)
  const matches = signatures.filter((signature) => constantTimeEqual(expected, normaliseEncoded(signature, encoding)))
  return matches.length > 0 ? VALID : invalid('the signature does not match')
}
