import { createHmac } from 'node:crypto'
import { z } from 'zod'
import { withSchema } from '../format.ts'
import { refineWith } from '../vocabulary.ts'
import { compareDigest, digestKeys } from './digest.ts'
import { compileSecret, secretEncoding, sharedSecret } from './secret.ts'
import type { SignatureFormat } from './signature.ts'
import { compileSigned } from './signed.ts'
import { findTimestampProblem } from './timestamp.ts'

const hmacConfig = z
  .strictObject({ ...digestKeys, secret: sharedSecret, secret_encoding: secretEncoding })
  .superRefine(refineWith(findTimestampProblem, 'signature.timestamp'))

/** `hmac`: a keyed digest over parts of the delivery (RFC 2104). */
export const hmac: SignatureFormat = {
  format: 'hmac',
  summary: 'HMAC over the parts, compared with what was sent.',
  config: hmacConfig,
  compile: withSchema(hmacConfig, (keys) => {
    const readSecret = compileSecret(keys.secret, keys.secret_encoding)
    const readSigned = compileSigned(keys)
    return async (delivery, scope, { now }) => {
      const secret = readSecret(scope)
      if (secret.kind === 'refused') return secret
      const signed = readSigned(delivery, scope, now())
      if (signed.kind === 'refused') return signed
      const digest = createHmac(keys.algorithm, secret.value).update(signed.value.content).digest()
      return compareDigest(digest, keys.string_type, signed.value.signatures)
    }
  }),
}
