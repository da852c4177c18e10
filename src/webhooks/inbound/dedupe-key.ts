import { createHash } from 'node:crypto'
import type { DedupePlan, WebhookPlan } from '../../engine/definitions/index.ts'
import type { TemplateScope } from '../../engine/expressions/index.ts'
import type { WebhookRequest } from '../../engine/formats/index.ts'

/** Longer ids, those that PostgreSQL stores as another text or not at all, and those like a digest are stored as their hash. */
const KEY_LENGTH_MAX = 200
/** The beginnings of digests: an id of the sender's choice is never the key of a content. */
const DIGEST = /^sha256:/

/** A request whose duplicates are recognised. */
interface DedupeRequest {
  /** Transformed. */
  readonly request: WebhookRequest
  /** As received: method, address, headers and the bytes that were sent. */
  readonly received: Pick<WebhookRequest, 'method' | 'url' | 'headers' | 'body'>
  readonly scope: TemplateScope
}

/** What is equal in two requests of which only the first becomes an event. */
export interface DedupeKey {
  readonly key: string
  /** How long the key is claimed. */
  readonly windowSeconds: number
}

/**
 * The dedupe key of a request: the first id of the definition that has a value, whatever else differs; else a hash of everything
 * that is read of the request.
 *
 * @returns undefined for a request without id and body: nothing tells its repetition from the next one
 */
export function dedupeKeyOf({ dedupe }: Pick<WebhookPlan, 'dedupe'>, given: DedupeRequest): DedupeKey | undefined {
  if (dedupe === undefined) return undefined
  const id = idOf(dedupe, given)
  if (id !== undefined) return { key: id, windowSeconds: dedupe.windowSeconds }
  if (given.received.body.byteLength === 0) return undefined
  return { key: hashOf(given.received, dedupe.headers), windowSeconds: dedupe.contentWindowSeconds }
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

function hashOf({ method, url, headers, body }: DedupeRequest['received'], read: DedupePlan['headers']): string {
  const names = Object.keys(headers).filter((name) => read === 'all' || read.has(name))
  const head = [method, url, ...names.sort().map((name) => [name, headers[name]])]
  return `sha256:${createHash('sha256')
    .update(`${JSON.stringify(head)}\n`)
    .update(body)
    .digest('hex')}`
}
