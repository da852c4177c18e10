import { createHash } from 'node:crypto'
import { z } from 'zod'
import { withSchema } from '../format.ts'
import { refineWith } from '../vocabulary.ts'
import { compareDigest, digestKeys } from './digest.ts'
import type { SignatureFormat } from './signature.ts'
import { compileSigned } from './signed.ts'
import { findTimestampProblem } from './timestamp.ts'

const hashConfig = z.strictObject(digestKeys).superRefine(refineWith(findTimestampProblem, 'signature.timestamp'))

/**
 * `hash`: a plain digest. Where it stands alone, one of the parts has to be the secret, as a placeholder; within `all_of` it
 * may prove that a body belongs to a digest which something else has signed.
 */
export const hash: SignatureFormat = {
  format: 'hash',
  summary: 'Digest over the parts, one of which is the secret, as a placeholder.',
  config: hashConfig,
  compile: withSchema(hashConfig, (keys) => {
    const readSigned = compileSigned(keys)
    return async (delivery, scope, { now }) => {
      const signed = readSigned(delivery, scope, now())
      if (signed.kind === 'refused') return signed
      const digest = createHash(keys.algorithm).update(signed.value.content).digest()
      return compareDigest(digest, keys.string_type, signed.value.signatures)
    }
  }),
}
