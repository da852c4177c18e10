import { z } from 'zod'
import { type SignatureFormat, sharedSecret } from './signature.ts'

/** `standard_webhooks`: the public scheme of webhook-id, webhook-timestamp and webhook-signature. */
export const standardWebhooks: SignatureFormat = {
  format: 'standard_webhooks',
  summary: 'Standard Webhooks, symmetric signatures.',
  config: z.strictObject({
    secret: sharedSecret,
    tolerance_seconds: z.int().min(1).default(300).describe('Allowed difference of the clocks.'),
  }),
  readiness: 'announced',
}
