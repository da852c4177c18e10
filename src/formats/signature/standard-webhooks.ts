import { createHmac } from 'node:crypto'
import { z } from 'zod'
import { withSchema } from '../format.ts'
import { compareDigest } from './digest.ts'
import { compileSecret, sharedSecret } from './secret.ts'
import type { SignatureFormat } from './signature.ts'
import { compileSigned } from './signed.ts'
import { invalid } from './verdict.ts'

const standardWebhooksConfig = z.strictObject({
  secret: sharedSecret,
  tolerance_seconds: z.int().min(1).default(300).describe('Allowed difference of the clocks.'),
  header_prefix: z
    .enum(['webhook-', 'svix-'])
    .default('webhook-')
    .describe('What the names of the three headers start with.'),
})

const SECRET_PREFIX = 'whsec_'
/** Version 1 is the symmetric one; signatures of other versions stand beside it. */
const VERSION = 'v1,'
/** Most signatures of one delivery; a sender that changes its secret has two. */
const SIGNATURES_MAX = 8

/** `standard_webhooks`: the public scheme of webhook-id, webhook-timestamp and webhook-signature (Standard Webhooks 1.0.0). */
export const standardWebhooks: SignatureFormat = {
  format: 'standard_webhooks',
  summary: 'Standard Webhooks, symmetric signatures; also as Svix sends them.',
  config: standardWebhooksConfig,
  compile: withSchema(standardWebhooksConfig, ({ secret, tolerance_seconds, header_prefix }) => {
    const readSecret = compileSecret(secret, 'base64', SECRET_PREFIX)
    const [id, timestamp] = [`$header.${header_prefix}id`, `$header.${header_prefix}timestamp`]
    const readSigned = compileSigned({
      parts: [id, timestamp, '$body'],
      separator: '.',
      compare_with: `$header.${header_prefix}signature`,
      timestamp: { value: timestamp, unit: 'seconds', tolerance_seconds },
    })
    return async (delivery, scope, { now }) => {
      const key = readSecret(scope)
      if (key.kind === 'refused') return key
      const signed = readSigned(delivery, scope, now())
      if (signed.kind === 'refused') return signed
      // Otherwise the border between id and timestamp could be moved without changing what is signed.
      if (delivery.headers[`${header_prefix}id`]?.includes('.')) return invalid('the id of the message holds a "."')
      const digest = createHmac('sha256', key.value).update(signed.value.content).digest()
      return compareDigest(digest, 'base64', symmetricSignatures(signed.value.signatures))
    }
  }),
}

/** The signatures of version 1 in `v1,<base64> v1a,<base64> v1,<base64>`. */
function symmetricSignatures(headers: readonly string[]): string[] {
  return headers
    .flatMap((header) => header.split(' ', SIGNATURES_MAX))
    .filter((entry) => entry.startsWith(VERSION))
    .map((entry) => entry.slice(VERSION.length))
}
