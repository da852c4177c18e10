import { z } from 'zod'
import { templateText } from '../vocabulary.ts'
import { type SignatureFormat, sharedSecret } from './signature.ts'

/** `compare`: a value of the delivery equals a secret. */
export const compare: SignatureFormat = {
  format: 'compare',
  summary: 'A header, parameter or body value that equals the secret.',
  config: z.strictObject({
    compare_with: templateText().describe('Where the secret is sent, for example `$header.x-token`.'),
    secret: sharedSecret,
  }),
  readiness: 'announced',
}
