import { z } from 'zod'
import type { Format } from '../format.ts'
import { secretText, templateText } from '../vocabulary.ts'

/** One way of proving that an inbound webhook is genuine. */
export interface SignatureFormat extends Format {}

/** Text that the parts of a signature are made of: `$body`, `$header.<name>`, `$query.<name>`, `$url`, `$method`, `$payload.<path>`, literals, placeholders. */
export const partsSchema = z
  .array(templateText())
  .min(1)
  .describe(
    'What is signed, in order: $body, $header.<name>, $query.<name>, $url, $method, $payload.<path>, literals, placeholders.',
  )

/** The keys that `hmac` and `hash` share. */
export const digestKeys = {
  algorithm: z.enum(['sha1', 'sha256', 'sha512']).default('sha256').describe('Digest.'),
  string_type: z.enum(['hex', 'base64', 'base64url']).default('hex').describe('How the signature is written.'),
  compare_with: templateText().describe('The signature that was sent, for example `$header.x-signature`.'),
  parts: partsSchema,
  separator: z.string().optional().describe('Stands between the parts. Default: nothing.'),
  signature_prefix: z.string().optional().describe('Stands before the signature, for example `sha256=`.'),
  timestamp: z
    .strictObject({
      value: templateText().describe('Where the time of sending is, for example `$header.x-timestamp`.'),
      unit: z.enum(['seconds', 'milliseconds', 'iso']).default('seconds').describe('How the time is written.'),
      tolerance_seconds: z.int().min(1).default(300).describe('In both directions.'),
    })
    .optional()
    .describe('Older or newer deliveries are refused.'),
} as const

/** A secret shared with the sender. */
export const sharedSecret = secretText().describe('Shared with the sender; an empty one refuses every delivery.')
