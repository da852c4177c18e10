import { z } from 'zod'
import type { SignatureFormat } from './signature.ts'
import { singleSignatureSchema } from './single-formats.ts'

/** `all_of`: every one of several verifications must pass. */
export const allOf: SignatureFormat = {
  format: 'all_of',
  summary: 'All of the verifications must pass.',
  config: z.strictObject({
    verifications: z.array(singleSignatureSchema).min(1).max(8).describe('The verifications.'),
  }),
  readiness: 'announced',
}
