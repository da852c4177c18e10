import { createHmac } from 'node:crypto'
import { isJsonObject, type Json } from '../../../src/foundation/json/index.ts'
import type { GoldenWebhook } from '../../unit/engine/catalog/webhook-journey.ts'

/** A delivery as it is sent to an address of the product. */
interface Addressed {
  /** The address under which the product is public. */
  readonly url: string
  readonly method: string
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

/** The recorded secret of all signatures. */
const SECRET = 'golden-webhook-secret'

/** Signatures of the address, which the recorded ones cannot be: headers by definition. */
const SIGNERS: Readonly<Record<string, (delivery: Addressed) => Readonly<Record<string, string>>>> = {
  hubspot: ({ method, url, body, headers }) => ({
    'x-hubspot-signature-v3': hmac(
      'sha256',
      method + decodeURIComponent(url) + body + headers['x-hubspot-request-timestamp'],
    ),
  }),
  square: ({ url, body }) => ({ 'x-square-hmacsha256-signature': hmac('sha256', url + body) }),
  trello: ({ url, body }) => ({ 'x-trello-webhook': hmac('sha1', body + url) }),
  twilio: ({ url, body }) => {
    const form = [...new URLSearchParams(body)].sort(([a], [b]) => (a < b ? -1 : 1))
    return { 'x-twilio-signature': hmac('sha1', url + form.map(([name, value]) => name + value).join('')) }
  },
}

/** Sends a recorded delivery to a path of the product. @returns the status */
export async function deliver(
  name: string,
  { method = 'POST', headers, query = '', body }: GoldenWebhook,
  { url, publicUrl, path }: { readonly url: string; readonly publicUrl: string; readonly path: string },
): Promise<number> {
  const target = query === '' ? path : `${path}?${query}`
  const signed = SIGNERS[name]?.({ url: publicUrl + target, method, body, headers }) ?? {}
  const sent = await fetch(url + target, {
    method,
    headers: { ...headers, ...signed },
    ...(method === 'GET' ? {} : { body }),
  })
  await sent.body?.cancel()
  return sent.status
}

/** A handshake that agrees on the recorded secret. */
export function withGoldenSecret(delivery: GoldenWebhook): GoldenWebhook {
  const { headers } = delivery
  return 'x-hook-secret' in headers ? { ...delivery, headers: { ...headers, 'x-hook-secret': SECRET } } : delivery
}

/** Whether a delivery becomes an event of a record. */
export function hasEvents({ result }: GoldenWebhook): boolean {
  const { events } = result
  return result.type === 'payload' && (Array.isArray(events) ? events.length > 0 : isJsonObject(events))
}

/** The first value by which a delivery names its account. */
export function lookupValueOf({ result }: GoldenWebhook): Json | undefined {
  return Array.isArray(result.accounts) ? result.accounts[0] : result.accounts
}

function hmac(algorithm: 'sha1' | 'sha256', text: string): string {
  return createHmac(algorithm, SECRET).update(text).digest('base64')
}
