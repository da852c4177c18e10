import { createHash } from 'node:crypto'
import type { WebhookPlan } from '../definitions/index.ts'
import type { TemplateScope } from '../expressions/index.ts'
import type { WebhookRequest } from '../formats/index.ts'

/** Longer ids, and those that PostgreSQL stores as another text or not at all, are stored as their hash. */
const KEY_LENGTH_MAX = 200
/** Headers that tell requests with the same body apart. */
const DISTINGUISHING = /signature|hmac|digest|message-number/

/**
 * The key by which duplicates of a request are recognised: the first id of the definition that has a value, else a hash of
 * method, address, body and the headers that hold a signature, all as received. Null: the definition recognises none.
 *
 * @param request transformed
 */
export function dedupeKeyOf(
  { dedupe }: Pick<WebhookPlan, 'dedupe'>,
  request: WebhookRequest,
  received: WebhookRequest,
  scope: TemplateScope,
): string | null {
  if (dedupe === undefined) return null
  for (const sources of dedupe.keys) {
    const parts = sources.map((read) => read(request, scope))
    const values = parts.flatMap((part) => (part.kind === 'ok' ? [part.value.map(textOf).join(',')] : []))
    if (values.length === parts.length) return shorten(values.length === 1 ? (values[0] ?? '') : JSON.stringify(values))
  }
  return hashOf(received)
}

function textOf(value: string | Uint8Array): string {
  return typeof value === 'string' ? value : createHash('sha256').update(value).digest('hex')
}

function shorten(id: string): string {
  if (id.length <= KEY_LENGTH_MAX && !id.includes('\0') && id.isWellFormed()) return id
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
