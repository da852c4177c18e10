import { hash } from 'node:crypto'
import type { TemplateScope } from '../../expressions/placeholder.ts'
import { listPlaceholderPaths } from '../../expressions/template.ts'
import { type FormatChoice, getFormat } from '../format.ts'
import { listMembers } from './combination.ts'
import { listItems } from './items.ts'
import { compileSignature, SIGNATURE_FORMATS } from './registry.ts'
import { compilePart, type SignedKeys, TIMESTAMP_READERS, type TimestampKeys } from './signed-content.ts'
import { asText, compileSource, readText, splitPrefix } from './source.ts'
import type { VerificationContext, WebhookRequest } from './verification.ts'

/**
 * Why a request was rejected, for the owner of the definition. A plain JSON value.
 *
 * Holds neither secrets, nor the expected signature, nor values of the request: parts are named, with their length and the
 * first characters of their SHA-256, which the owner compares with what the sender has signed.
 */
export interface SignatureExplanation {
  /** The format that rejected it. */
  readonly format: string
  /** The sentence of the verification. */
  readonly reason: string
  /** The signed parts, in order; absent where the format signs none. */
  readonly parts?: readonly ExplainedPart[]
  /** Where signatures are read, and why one cannot be. */
  readonly signatures?: readonly { readonly source: string; readonly problem?: string }[]
  readonly timestamp?: ExplainedTimestamp
  /** The members of `any_of` and `all_of` that rejected the request. */
  readonly members?: readonly SignatureExplanation[]
}

/** One signed part. */
interface ExplainedPart {
  /** As in the definition: `$body`, `$header.x-timestamp`, a literal text. */
  readonly source: string
  /** Length in bytes; absent where there is a problem, or the part has placeholders and can be a secret. */
  readonly bytes?: number
  /** The first 12 hexadecimal characters of its SHA-256; absent like `bytes`. */
  readonly sha256?: string
  /** Why the part has no value. */
  readonly problem?: string
}

/** The time of sending. */
interface ExplainedTimestamp {
  readonly source: string
  readonly toleranceSeconds: number
  /** Seconds by which the clock of the service is ahead of the time of sending; negative: behind. */
  readonly offBySeconds?: number
  /** Why there is no time, or that it seems to be of another unit. */
  readonly problem?: string
}

const HASH_PREFIX_LENGTH = 12
/** Units of times that are numbers. */
const UNITS = ['seconds', 'milliseconds'] as const

/**
 * Explains why a checked `{format, config}` rejects a request; `undefined` when it accepts it.
 *
 * @throws the errors of `Verify`
 */
export async function explainSignature(
  choice: FormatChoice,
  request: WebhookRequest,
  scope: TemplateScope,
  context: VerificationContext,
): Promise<SignatureExplanation | undefined> {
  const result = await compileSignature(choice)(request, scope, context)
  if (result.kind === 'valid') return undefined
  const members = listMembers(choice)
  if (members.length > 0) {
    const explained = await Promise.all(members.map((member) => explainSignature(member, request, scope, context)))
    const rejecting = explained.filter((member) => member !== undefined)
    return { format: choice.format, reason: result.reason, members: rejecting }
  }
  const keys = getFormat(SIGNATURE_FORMATS, choice.format).signed?.(choice.config)
  const content = keys === undefined ? {} : explainContent(keys, firstItem(keys, request), scope, context.now())
  return { format: choice.format, reason: result.reason, ...content }
}

/** The request with its first entry, where the entries of a list are signed. */
function firstItem({ items: path }: SignedKeys, request: WebhookRequest): WebhookRequest {
  const items = path === undefined ? undefined : listItems(path, request)
  return (items?.kind === 'ok' ? items.value[0] : undefined) ?? request
}

function explainContent(
  keys: SignedKeys,
  request: WebhookRequest,
  scope: TemplateScope,
  now: Date,
): Pick<SignatureExplanation, 'parts' | 'signatures' | 'timestamp'> {
  return {
    parts: keys.parts.map((part) => explainPart(part, request, scope)),
    signatures: [keys.compare_with].flat().map((source) => explainSource(source, request, scope)),
    ...(keys.timestamp === undefined ? {} : { timestamp: explainTimestamp(keys.timestamp, request, scope, now) }),
  }
}

function explainSource(
  text: string,
  request: WebhookRequest,
  scope: TemplateScope,
): { source: string; problem?: string } {
  const read = compileSource(splitPrefix(text).token)(request, scope)
  return { source: text, ...(read.kind === 'invalid' ? { problem: read.reason } : {}) }
}

function explainPart(part: string | readonly string[], request: WebhookRequest, scope: TemplateScope): ExplainedPart {
  const source = [part].flat().join('')
  const read = compilePart(part)(request, scope)
  if (read.kind === 'invalid') return { source, problem: read.reason }
  const [value = '', ...more] = read.value
  if (more.length > 0) return { source, problem: 'is there more than once' }
  if (listPlaceholderPaths(source).length > 0) return { source }
  const bytes = typeof value === 'string' ? Buffer.from(value) : value
  return { source, bytes: bytes.byteLength, sha256: hash('sha256', bytes).slice(0, HASH_PREFIX_LENGTH) }
}

function explainTimestamp(
  keys: TimestampKeys,
  request: WebhookRequest,
  scope: TemplateScope,
  now: Date,
): ExplainedTimestamp {
  const base = { source: keys.value, toleranceSeconds: keys.tolerance_seconds }
  const text = readText(compileSource(keys.value), request, scope)
  if (text.kind === 'invalid') return { ...base, problem: text.reason }
  const sentMs = TIMESTAMP_READERS[keys.unit](asText(text.value))
  if (Number.isNaN(sentMs)) return { ...base, problem: `is not a time in ${keys.unit}` }
  const offBySeconds = Math.round((now.getTime() - sentMs) / 1000)
  const [meant] = UNITS.filter((unit) => {
    const offMs = Math.abs(now.getTime() - TIMESTAMP_READERS[unit](asText(text.value)))
    return unit !== keys.unit && offMs <= keys.tolerance_seconds * 1000
  })
  if (Math.abs(offBySeconds) <= keys.tolerance_seconds || meant === undefined) return { ...base, offBySeconds }
  return { ...base, offBySeconds, problem: `looks like ${meant}, but is read as ${keys.unit}: set the unit` }
}
