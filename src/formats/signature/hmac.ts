import { z } from 'zod'
import { digestKeys, type SignatureFormat, sharedSecret } from './signature.ts'

/** `hmac`: a keyed digest over parts of the delivery (RFC 2104). */
export const hmac: SignatureFormat = {
  format: 'hmac',
  summary: 'HMAC over the parts, compared with what was sent.',
  config: z.strictObject({
    ...digestKeys,
    secret: sharedSecret,
    secret_encoding: z.enum(['utf8', 'hex', 'base64']).default('utf8').describe('How the secret is written.'),
  }),
  readiness: 'data',
}
