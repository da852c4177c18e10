import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { request as sendPlain } from 'node:http'
import { request as sendSecure } from 'node:https'
import { text } from 'node:stream/consumers'

/** A request of a client, on a connection of its own. */
export interface SentRequest {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** Whom the client trusts, PEM. */
  readonly ca?: string
  /** Address of the client. */
  readonly localAddress?: string
}

/** Sends a request; resolves with the head of its answer. A path is sent as it is written. */
export async function open(url: string, { body, ...options }: SentRequest = {}): Promise<IncomingMessage> {
  const [, origin = '', path = '/'] = /^(https?:\/\/[^/]+)(.*)$/.exec(url) ?? []
  const { protocol, hostname, port } = new URL(origin)
  const send = protocol === 'https:' ? sendSecure : sendPlain
  // Proxies listen on IPv4 alone.
  const to = { host: '127.0.0.1', servername: hostname, port, path, agent: false }
  const sent = send({ ...to, ...options, headers: { host: `${hostname}:${port}`, ...options.headers } })
  sent.end(body)
  const [answer]: IncomingMessage[] = await once(sent, 'response')
  if (answer === undefined) throw new Error('no answer')
  return answer
}

/** The same with the whole body. */
export async function send(
  url: string,
  options?: SentRequest,
): Promise<{ status: number; headers: IncomingMessage['headers']; body: string }> {
  const answer = await open(url, options)
  return { status: answer.statusCode ?? 0, headers: answer.headers, body: await text(answer) }
}

/** The beginning of an answer that may never end, and after how many milliseconds it was there. */
export async function firstPart(
  url: string,
  options: SentRequest,
): Promise<{ ms: number; answer: IncomingMessage; part: string }> {
  const startMs = performance.now()
  const answer = await open(url, options)
  const [part]: Buffer[] = await once(answer, 'data', { signal: AbortSignal.timeout(5_000) })
  return { ms: Math.round(performance.now() - startMs), answer, part: String(part) }
}

/** An enveloped message of Connect and gRPC-Web: flags, length, bytes. */
export function envelope(message: string): Buffer {
  const bytes = Buffer.from(message)
  const head = Buffer.alloc(5)
  head.writeUInt32BE(bytes.length, 1)
  return Buffer.concat([head, bytes])
}
