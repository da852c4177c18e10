import { z } from 'zod'
import { digestKeys, type SignatureFormat } from './signature.ts'

/** `hash`: a plain digest where the secret is one of the parts, as a placeholder. */
export const hash: SignatureFormat = {
  format: 'hash',
  summary: 'Digest over the parts, one of which is the secret.',
  config: z.strictObject(digestKeys),
  readiness: 'announced',
}
