import { z } from 'zod'
import { type SignatureFormat, sharedSecret } from './signature.ts'

/** `bearer`: a fixed token in the Authorization header. */
export const bearer: SignatureFormat = {
  format: 'bearer',
  summary: 'A fixed bearer token.',
  config: z.strictObject({ token: sharedSecret }),
  readiness: 'announced',
}
