import { z } from 'zod'
import type { TemplateScope } from '../../expressions/index.ts'
import { listOf, rawText } from '../schema-types.ts'
import { BYTE_ENCODINGS } from './secret.ts'
import { type InboundDelivery, invalid, ok, type Result } from './signature.ts'
import { asText, compileSource, type ReadValues, readText, sourceText, tokenText } from './source.ts'

/** Reads a time of a delivery, as epoch milliseconds. */
export type ReadTime = (delivery: InboundDelivery, scope: TemplateScope) => Result<number>

/** The timestamp of a delivery, against replays. */
const timestampSchema = z.strictObject({
  value: tokenText().describe('Where the time of sending is, for example `$header.x-timestamp`. It has to be signed.'),
  unit: z.enum(['seconds', 'milliseconds', 'iso']).default('seconds').describe('How the time is written.'),
  tolerance_seconds: z.int().min(1).default(300).describe('In both directions.'),
})

export type TimestampKeys = z.output<typeof timestampSchema>

const WHOLE_NUMBER = /^\d{1,15}$/
const RFC_3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})$/

/** Epoch milliseconds, NaN for texts that are not a time. */
export const TIMESTAMP_READERS: Readonly<Record<TimestampKeys['unit'], (text: string) => number>> = {
  seconds: (text) => (WHOLE_NUMBER.test(text) ? Number(text) * 1000 : Number.NaN),
  milliseconds: (text) => (WHOLE_NUMBER.test(text) ? Number(text) : Number.NaN),
  iso: (text) => (RFC_3339.test(text) ? Date.parse(text) : Number.NaN),
}

/** Checks that a delivery is neither too old nor too far in the future. */
function compileTimestamp(
  keys: TimestampKeys | undefined,
): (delivery: InboundDelivery, scope: TemplateScope, now: Date) => Result<null> {
  if (keys === undefined) return () => ok(null)
  const readTime = compileTime(keys)
  return (delivery, scope, now) => {
    const sent = readTime(delivery, scope)
    return sent.kind === 'invalid' ? sent : checkAge(sent.value, keys.tolerance_seconds, now)
  }
}

/** Compiles a checked place of a time; NaN when the text there is not a time. */
export function compileTime({ value, unit }: Pick<TimestampKeys, 'value' | 'unit'>): ReadTime {
  const source = compileSource(value)
  return (delivery, scope) => {
    const text = readText(source, delivery, scope)
    return text.kind === 'invalid' ? text : ok(TIMESTAMP_READERS[unit](text.value))
  }
}

/** @param sentMs NaN when the timestamp is not a time */
function checkAge(sentMs: number, toleranceSeconds: number, now: Date): Result<null> {
  if (Number.isNaN(sentMs)) return invalid('the timestamp is not a time')
  const isFresh = Math.abs(now.getTime() - sentMs) <= toleranceSeconds * 1000
  return isFresh ? ok(null) : invalid(`the timestamp is more than ${toleranceSeconds} seconds off`)
}

/** The problem of a timestamp that is not signed: it could be replaced and would not prevent replays. */
export function findTimestampProblem(keys: {
  readonly timestamp?: TimestampKeys | undefined
  readonly parts: readonly string[]
}): string | undefined {
  const value = keys.timestamp?.value
  if (value === undefined || keys.parts.includes(value)) return undefined
  if (value.startsWith('$payload.') && keys.parts.includes('$body')) return undefined
  if (value.startsWith('$query.') && keys.parts.some((part) => part.startsWith('$url'))) return undefined
  return `has the timestamp ${value}, which is not among the signed parts`
}

/** Settings that all formats with signed parts share. */
export const signedKeys = {
  compare_with: tokenText().describe('The signature that was sent, for example `$header.x-signature`.'),
  parts: listOf(sourceText())
    .min(1)
    .max(16)
    .describe(
      'What is signed, in order: $body, $body.sha256, $body.crc32, $form.sorted, $header.<name>, $header.<name>[<field>], $query.<name>, $url, $url.decoded, $method, $payload.<path>, literals, placeholders.',
    ),
  separator: rawText().optional().describe('Text between the parts. Default: nothing.'),
  signature_prefix: rawText().optional().describe('Text before the signature, for example `sha256=`.'),
  timestamp: timestampSchema.optional().describe('Older or newer deliveries are rejected.'),
} as const

/** Encoding of the signature that was sent. */
export const stringType = z.enum(BYTE_ENCODINGS).describe('How the signature is written.')

export type SignedKeys = z.output<z.ZodObject<typeof signedKeys>>

/** The signed content of a delivery and the signatures that were sent, one of which must match. */
export interface Signed {
  readonly content: Uint8Array
  readonly signatures: readonly string[]
}

/** Extracts the signed content. The timestamp is checked first: nothing is computed for an old delivery. */
export function compileSigned(
  keys: SignedKeys,
): (delivery: InboundDelivery, scope: TemplateScope, now: Date) => Result<Signed> {
  const checkTimestamp = compileTimestamp(keys.timestamp)
  const parts = keys.parts.map(compileSource)
  const signature = compileSource(keys.compare_with)
  const separator = Buffer.from(keys.separator ?? '')
  return (delivery, scope, now) => {
    const fresh = checkTimestamp(delivery, scope, now)
    if (fresh.kind === 'invalid') return fresh
    const content = joinParts(parts, separator, delivery, scope)
    if (content.kind === 'invalid') return content
    const signatures = readSignatures(signature, keys.signature_prefix ?? '', delivery, scope)
    return signatures.kind === 'invalid' ? signatures : ok({ content: content.value, signatures: signatures.value })
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
    if (read.kind === 'invalid') return read
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
  if (read.kind === 'invalid') return read
  const signatures = read.value
    .map(asText)
    .filter((text) => text.startsWith(prefix) && text.length > prefix.length)
    .map((text) => text.slice(prefix.length))
  return signatures.length === 0 ? invalid(`the signature does not start with ${prefix}`) : ok(signatures)
}
