import { z } from 'zod'
import { type ByteEncoding, canonical, isSame } from './encoding.ts'
import { signedKeys, stringType } from './signed.ts'
import { GENUINE, refused, type Verdict } from './verdict.ts'

/** The keys that `hmac` and `hash` share. */
export const digestKeys = {
  algorithm: z.enum(['sha1', 'sha256', 'sha512']).default('sha256').describe('Digest.'),
  string_type: stringType.default('hex'),
  ...signedKeys,
} as const

/** Whether one of the signatures that were sent is the digest that was computed. All are looked at. */
export function judgeDigest(digest: Buffer, encoding: ByteEncoding, signatures: readonly string[]): Verdict {
  const expected = canonical(digest.toString(encoding), encoding)
  const matches = signatures.filter((signature) => isSame(expected, canonical(signature, encoding)))
  return matches.length > 0 ? GENUINE : refused('the signature does not match')
}
