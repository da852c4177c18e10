import { z } from 'zod'
import type { TemplateScope } from '../../expression/index.ts'
import { listOf, rawText } from '../vocabulary.ts'
import { BYTE_ENCODINGS } from './encoding.ts'
import type { InboundDelivery } from './signature.ts'
import { asText, compileSource, type ReadValues, sourceText, tokenText } from './source.ts'
import { compileTimestamp, timestampSchema } from './timestamp.ts'
import { invalid, ok, type Result } from './verdict.ts'

/** The keys of every format that computes something over parts of the delivery. */
export const signedKeys = {
  compare_with: tokenText().describe('The signature that was sent, for example `$header.x-signature`.'),
  parts: listOf(sourceText())
    .min(1)
    .max(16)
    .describe(
      'What is signed, in order: $body, $body.sha256, $body.crc32, $form.sorted, $header.<name>, $header.<name>[<field>], $query.<name>, $url, $url.decoded, $method, $payload.<path>, literals, placeholders.',
    ),
  separator: rawText().optional().describe('Stands between the parts. Default: nothing.'),
  signature_prefix: rawText().optional().describe('Stands before the signature, for example `sha256=`.'),
  timestamp: timestampSchema.optional().describe('Older or newer deliveries are refused.'),
} as const

/** How the signature that was sent is written. */
export const stringType = z.enum(BYTE_ENCODINGS).describe('How the signature is written.')

type SignedKeys = z.output<z.ZodObject<typeof signedKeys>>

/** What a format computes over, and what the sender says it comes to: one of `signatures` has to be it. */
export interface Signed {
  readonly content: Uint8Array
  readonly signatures: readonly string[]
}

/** Takes a delivery apart. The time is looked at first: an old delivery is refused before anything is computed. */
export function compileSigned(
  keys: SignedKeys,
): (delivery: InboundDelivery, scope: TemplateScope, now: Date) => Result<Signed> {
  const checkTimestamp = compileTimestamp(keys.timestamp)
  const parts = keys.parts.map(compileSource)
  const signature = compileSource(keys.compare_with)
  const separator = Buffer.from(keys.separator ?? '')
  return (delivery, scope, now) => {
    const fresh = checkTimestamp(delivery, scope, now)
    if (fresh.kind === 'refused') return fresh
    const content = joinParts(parts, separator, delivery, scope)
    if (content.kind === 'refused') return content
    const signatures = readSignatures(signature, keys.signature_prefix ?? '', delivery, scope)
    return signatures.kind === 'refused' ? signatures : ok({ content: content.value, signatures: signatures.value })
  }
}

function joinParts(
  parts: readonly ReadValues[],
  separator: Uint8Array,
  delivery: InboundDelivery,
  scope: TemplateScope,
): Result<Uint8Array> {
  const pieces: Uint8Array[] = []
  for (const part of parts) {
    const read = part(delivery, scope)
    if (read.kind === 'refused') return read
    const [value = '', ...more] = read.value
    if (more.length > 0) return invalid('a signed field of a header is there more than once')
    if (pieces.length > 0) pieces.push(separator)
    pieces.push(typeof value === 'string' ? Buffer.from(value) : value)
  }
  return ok(Buffer.concat(pieces))
}

function readSignatures(
  source: ReadValues,
  prefix: string,
  delivery: InboundDelivery,
  scope: TemplateScope,
): Result<readonly string[]> {
  const read = source(delivery, scope)
  if (read.kind === 'refused') return read
  const signatures = read.value
    .map(asText)
    .filter((text) => text.startsWith(prefix) && text.length > prefix.length)
    .map((text) => text.slice(prefix.length))
  return signatures.length === 0 ? invalid(`the signature does not start with ${prefix}`) : ok(signatures)
}
