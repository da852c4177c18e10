import { z } from 'zod'
import type { TemplateScope } from '../../expressions/placeholder.ts'
import { listOf, rawText } from '../schema-types.ts'
import { itemsKey } from './items.ts'
import { BYTE_ENCODINGS } from './secret.ts'
import {
  asText,
  compileSource,
  listTokens,
  optionalSourceText,
  prefixedTokenText,
  type ReadValues,
  readText,
  sourceText,
  splitPrefix,
  tokenText,
} from './source.ts'
import { invalid, ok, type Result, type WebhookRequest } from './verification.ts'

/** Most parts, and most headers that hold signatures. */
const PARTS_MAX = 32
const SIGNATURES_MAX = 16

/** Reads a time of a request, as epoch milliseconds. */
export type ReadTime = (request: WebhookRequest, scope: TemplateScope) => Result<number>

/** The timestamp of a request, against replays. */
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

/** Checks that a request is neither too old nor too far in the future. */
function compileTimestamp(
  keys: TimestampKeys | undefined,
): (request: WebhookRequest, scope: TemplateScope, now: Date) => Result<null> {
  if (keys === undefined) return () => ok(null)
  const readTime = compileTime(keys)
  return (request, scope, now) => {
    const sent = readTime(request, scope)
    return sent.kind === 'invalid' ? sent : checkAge(sent.value, keys.tolerance_seconds, now)
  }
}

/** Compiles a checked place of a time; NaN when the text there is not a time. */
export function compileTime({ value, unit }: Pick<TimestampKeys, 'value' | 'unit'>): ReadTime {
  const source = compileSource(value)
  return (request, scope) => {
    const text = readText(source, request, scope)
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
  readonly parts: readonly (string | readonly string[])[]
}): string | undefined {
  const value = keys.timestamp?.value
  const parts = keys.parts.filter((part) => typeof part === 'string')
  const isSigned = (token: string) => parts.some((part) => part === token || listTokens(part).includes(token))
  if (value === undefined || isSigned(value)) return undefined
  if (/^\$(payload|form)\./.test(value) && isSigned('$body')) return undefined
  if (value.startsWith('$query.') && ['$url', '$url.decoded', '$url.with_port', '$url.without_port'].some(isSigned))
    return undefined
  return `has the timestamp ${value}, which is not among the signed parts`
}

/** Settings that all formats with signed parts share. */
export const signedKeys = {
  compare_with: z
    .union([prefixedTokenText(), listOf(prefixedTokenText()).min(1).max(SIGNATURES_MAX)])
    .describe(
      'The signature that was sent, for example `$header.x-signature` or `v0=$header.x-signature`; a list where a sender has several headers, one of which must match.',
    ),
  parts: listOf(z.union([sourceText(), listOf(optionalSourceText()).min(1).max(8)]))
    .min(1)
    .max(PARTS_MAX)
    .describe(
      'What is signed, in order: $body, $body.sha256, $body.crc32, $form.sorted, $form.<name>, $header.<name>, $header.<name>[<field>], $query.<name>, $url, $url.decoded, $url.with_port, $url.without_port, $path, $method, $payload.<path>, $item.<path>, literals, placeholders, or a text with several of them. A list among them is a group that is empty where one of its values is missing.',
    ),
  separator: rawText().optional().describe('Text between the parts. Default: nothing.'),
  signature_prefix: rawText().optional().describe('Text before the signature, for example `sha256=`.'),
  items: itemsKey,
  timestamp: timestampSchema.optional().describe('Older or newer requests are rejected.'),
} as const

/** Encoding of the signature that was sent. */
export const stringType = z.enum(BYTE_ENCODINGS).describe('How the signature is written.')

export type SignedKeys = z.output<z.ZodObject<typeof signedKeys>>

/** The signed content of a request and the signatures that were sent, one of which must match. */
export interface Signed {
  readonly content: Uint8Array
  readonly signatures: readonly string[]
}

/** Extracts the signed content. The timestamp is checked first: nothing is computed for an old request. */
export function compileSigned(
  keys: SignedKeys,
): (request: WebhookRequest, scope: TemplateScope, now: Date) => Result<Signed> {
  const checkTimestamp = compileTimestamp(keys.timestamp)
  const parts = keys.parts.map(compilePart)
  const readSent = compileSent(keys)
  const separator = Buffer.from(keys.separator ?? '')
  return (request, scope, now) => {
    const fresh = checkTimestamp(request, scope, now)
    if (fresh.kind === 'invalid') return fresh
    const content = joinParts(parts, separator, request, scope)
    if (content.kind === 'invalid') return content
    const signatures = readSent(request, scope)
    return signatures.kind === 'invalid' ? signatures : ok({ content: content.value, signatures: signatures.value })
  }
}

/** A part; a group is its joined members, or empty where one of them is missing. */
export function compilePart(part: string | readonly string[]): ReadValues {
  if (typeof part === 'string') return compileSource(part)
  const members = part.map(compileSource)
  return (request, scope) => {
    const joined = joinParts(members, Buffer.alloc(0), request, scope)
    return ok([joined.kind === 'invalid' ? '' : joined.value])
  }
}

function joinParts(
  parts: readonly ReadValues[],
  separator: Uint8Array,
  request: WebhookRequest,
  scope: TemplateScope,
): Result<Uint8Array> {
  const pieces: Uint8Array[] = []
  for (const part of parts) {
    const read = part(request, scope)
    if (read.kind === 'invalid') return read
    const [value = '', ...more] = read.value
    if (more.length > 0) return invalid('a signed field of a header is there more than once')
    if (pieces.length > 0) pieces.push(separator)
    pieces.push(typeof value === 'string' ? Buffer.from(value) : value)
  }
  return ok(Buffer.concat(pieces))
}

/** The signatures that were sent, at least one, without their prefix. */
function compileSent(keys: SignedKeys): (request: WebhookRequest, scope: TemplateScope) => Result<readonly string[]> {
  const places = [keys.compare_with].flat().map((text) => {
    const { prefix, token } = splitPrefix(text)
    return { source: compileSource(token), prefix: (keys.signature_prefix ?? '') + prefix }
  })
  return (request, scope) => {
    const found: string[] = []
    let first: Result<readonly string[]> | undefined
    for (const { source, prefix } of places) {
      const read = readSignatures(source, prefix, request, scope)
      first ??= read
      if (read.kind === 'ok') found.push(...read.value)
    }
    return found.length === 0 && first !== undefined ? first : ok(found)
  }
}

function readSignatures(
  source: ReadValues,
  prefix: string,
  request: WebhookRequest,
  scope: TemplateScope,
): Result<readonly string[]> {
  const read = source(request, scope)
  if (read.kind === 'invalid') return read
  const signatures = read.value
    .map(asText)
    .filter((text) => text.startsWith(prefix) && text.length > prefix.length)
    .map((text) => text.slice(prefix.length))
  return signatures.length === 0 ? invalid(`the signature does not start with ${prefix}`) : ok(signatures)
}
