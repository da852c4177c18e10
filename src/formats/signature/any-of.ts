import { z } from 'zod'
import type { SignatureFormat } from './signature.ts'
import { singleSignatureSchema } from './single-formats.ts'

/** `any_of`: one of several verifications is enough, for example during a change of secrets. */
export const anyOf: SignatureFormat = {
  format: 'any_of',
  summary: 'One of the verifications must pass.',
  config: z.strictObject({
    verifications: z.array(singleSignatureSchema).min(1).max(8).describe('The verifications.'),
  }),
  readiness: 'announced',
}
