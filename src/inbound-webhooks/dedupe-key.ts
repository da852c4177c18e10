import { createHash } from 'node:crypto'
import type { DedupePlan, WebhookPlan } from '../definitions/index.ts'
import type { TemplateScope } from '../expressions/index.ts'
import type { WebhookRequest } from '../formats/index.ts'

/** Longer ids, those that PostgreSQL stores as another text or not at all, and those like a digest are stored as their hash. */
const KEY_LENGTH_MAX = 200
/** The beginnings of digests: an id of the sender's choice is never the key of a content. */
const DIGEST = /^(?:signed|sha256):/
/** Headers that tell requests with the same body apart. */
const DISTINGUISHING = /signature|hmac|digest|message-number/

/** A request whose duplicates are recognised. */
interface DedupeRequest {
  readonly request: WebhookRequest
  /** Before it was transformed. */
  readonly received: WebhookRequest
  readonly scope: TemplateScope
  /** Digests of what was signed; absent where no content was. */
  readonly signed: readonly Uint8Array[] | undefined
}

/** The keys by which duplicates are recognised; two requests with one in common are duplicates. */
export interface DedupeKeys {
  /** The first id of the definition that has a value. */
  readonly id: string | null
  /** Of the content; equal for requests that differ in unsigned parts alone. */
  readonly content: string | null
}

/** Of a request of which no duplicates are recognised. */
export const NO_DEDUPE_KEYS: DedupeKeys = { id: null, content: null }

/**
 * The dedupe keys of a request. The content is what was signed: ids are often unsigned, so that a captured request could be sent
 * again with another one. Of a request without id and signed content it is method, address, body and the headers that hold a
 * signature, all as received.
 */
export function dedupeKeysOf({ dedupe }: Pick<WebhookPlan, 'dedupe'>, given: DedupeRequest): DedupeKeys {
  if (dedupe === undefined) return NO_DEDUPE_KEYS
  const { received, signed } = given
  const id = idOf(dedupe, given) ?? null
  if (signed !== undefined) return { id, content: contentKey(signed) }
  return { id, content: id === null ? hashOf(received) : null }
}

/** The key of all requests with the same signed content, whatever is not signed of them. */
function contentKey(signed: readonly Uint8Array[]): string {
  const hash = createHash('sha256')
  for (const digest of signed) hash.update(digest)
  return `signed:${hash.digest('hex')}`
}

function idOf({ keys }: DedupePlan, { request, scope }: DedupeRequest): string | undefined {
  for (const sources of keys) {
    const parts = sources.map((read) => read(request, scope))
    const values = parts.flatMap((part) => (part.kind === 'ok' ? [part.value.map(textOf).join(',')] : []))
    if (values.length === parts.length) return shorten(values.length === 1 ? (values[0] ?? '') : JSON.stringify(values))
  }
  return undefined
}

function textOf(value: string | Uint8Array): string {
  return typeof value === 'string' ? value : createHash('sha256').update(value).digest('hex')
}

function shorten(id: string): string {
  if (id.length <= KEY_LENGTH_MAX && !id.includes('\0') && id.isWellFormed() && !DIGEST.test(id)) return id
  // UTF-8 has one character for all lone surrogates: different ids would have the same hash.
  const bytes = id.isWellFormed() ? Buffer.from(id) : Buffer.from(id, 'utf16le')
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`
}

function hashOf({ method, url, headers, body }: WebhookRequest): string {
  const hash = createHash('sha256').update(`${method}\n${url}\n`)
  for (const name of Object.keys(headers).sort()) {
    if (DISTINGUISHING.test(name)) hash.update(`${name}:${headers[name]}\n`)
  }
  return `sha256:${hash.update(body).digest('hex')}`
}
