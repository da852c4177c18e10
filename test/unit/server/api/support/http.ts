import { connect as connectHttp2, type IncomingHttpHeaders, type IncomingHttpStatusHeader } from 'node:http2'
import { connect as connectTcp, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import type { JsonObject } from '../../../../../src/foundation/json/index.ts'

/** A whole answer over plain HTTP. */
export interface HttpAnswer {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  readonly text: string
  readonly json: JsonObject
}

export interface HttpInit {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
}

/** The header every authenticated request carries. */
export const AS_ENVIRONMENT = { authorization: 'Bearer env' }
export const JSON_BODY = { ...AS_ENVIRONMENT, 'content-type': 'application/json' }

/** One request over HTTP/1.1. */
export async function http1(baseUrl: string, path: string, init: HttpInit = {}): Promise<HttpAnswer> {
  const { method = 'GET', headers = AS_ENVIRONMENT, body } = init
  const response = await fetch(baseUrl + path, {
    method,
    headers,
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : Buffer.from(body) }),
    signal: AbortSignal.timeout(120_000),
  })
  return answerOf(response.status, response.headers, await response.text())
}

/** One request over HTTP/2 without TLS, on a connection of its own. */
export async function http2(baseUrl: string, path: string, init: HttpInit = {}): Promise<HttpAnswer> {
  const { method = 'GET', headers = AS_ENVIRONMENT, body } = init
  const session = connectHttp2(baseUrl)
  try {
    const stream = session.request({ ':path': path, ':method': method, ...headers })
    const head = new Promise<IncomingHttpHeaders & IncomingHttpStatusHeader>((resolve, reject) => {
      stream.once('response', resolve).once('error', reject)
    })
    stream.end(body)
    const received = await head
    const pairs = Object.entries(received).filter(([name]) => !name.startsWith(':'))
    const all = pairs.map(([name, value]) => [name, String(value)] as const)
    return answerOf(received[':status'] ?? 0, all, await text(stream))
  } finally {
    session.close()
  }
}

/** A raw connection, for what no client would send. */
export async function rawConnection(port: number): Promise<RawConnection> {
  const socket = connectTcp(port, '127.0.0.1')
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  const received: Buffer[] = []
  socket.on('data', (chunk) => received.push(chunk)).on('error', () => {})
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  return {
    socket,
    closed,
    text: () => Buffer.concat(received).toString('latin1'),
    until: (pattern) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const all = Buffer.concat(received).toString('latin1')
          if (pattern.test(all)) resolve(all)
        }
        socket.on('data', look).once('close', () => reject(new Error(`closed before ${pattern}`)))
        look()
      }),
  }
}

export interface RawConnection {
  readonly socket: Socket
  readonly closed: Promise<void>
  text(): string
  /** Resolves with everything received once it matches. */
  until(pattern: RegExp): Promise<string>
}

function answerOf(status: number, headers: Iterable<readonly [string, string]>, body: string): HttpAnswer {
  return {
    status,
    headers: new Map(headers),
    text: body,
    get json() {
      return JSON.parse(body) as JsonObject
    },
  }
}
