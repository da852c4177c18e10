import type { IncomingHttpHeaders } from 'node:http'
import type { Http2Stream } from 'node:http2'
import type { Readable, Writable } from 'node:stream'
import type { Protocol } from './pipeline/protocol.ts'
import type { ServerContext } from './pipeline/server-context.ts'
import { RequestContext } from './request-context.ts'

/** What the API uses of a request of `node:http` or of the compatibility layer of `node:http2`. */
export interface ApiRequest extends Readable {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly headers: IncomingHttpHeaders
  /** Names and values in turn, as they were received; of HTTP/2 also the pseudo-headers. */
  readonly rawHeaders: readonly string[]
  readonly httpVersionMajor: number
  readonly httpVersionMinor: number
  readonly complete: boolean
  readonly socket: {
    readonly remoteAddress?: string | undefined
    /** Absent without TLS, and for HTTP/2. */
    readonly encrypted?: boolean
    destroy(): unknown
    /** Without TLS only. */
    resetAndDestroy(): unknown
  }
  /** HTTP/2 only. */
  readonly stream?: Http2Stream
}

/** What the API uses of a response of either. */
export interface ApiResponse extends Writable {
  readonly headersSent: boolean
  /** For a header with several values, which the headers of the context cannot have. */
  setHeader(name: string, values: readonly string[]): unknown
  writeHead(status: number, headers: Readonly<Record<string, string | number>>): unknown
  writeContinue(): void
  addTrailers(trailers: Readonly<Record<string, string>>): void
}

/**
 * When an endpoint reads the bodies of requests. What is read before it is known who sends it counts against a budget of its
 * client address.
 */
export type BodyReading = 'never' | 'before_authentication' | 'after_authentication'

/** One HTTP request and its response. */
export interface Exchange {
  readonly server: ServerContext
  readonly request: ApiRequest
  readonly response: ApiResponse
  readonly context: RequestContext
  /** Path of the operation or HTTP route, for logs and metrics; never text of the client. */
  operationPath: string
  /** Bytes of an unread body that are drained after the response; absent: any number, for the time of a drain. */
  drainBytesMax?: number
  /** When the body may be read; absent: never. */
  readsBody?: BodyReading
  /** How an error is written: in the form of REST until another protocol is known. */
  protocol: Protocol
}

/** Operation of a request that leads nowhere, in logs and metrics. */
const UNKNOWN_OPERATION = 'unknown'

/** Opens the exchange of a request until its response is closed; a client that disconnects before that interrupts it. */
export function openExchange(
  server: ServerContext,
  request: ApiRequest,
  response: ApiResponse,
  protocol: Protocol,
): Exchange {
  const context = new RequestContext(request)
  const exchange = { server, request, response, context, operationPath: UNKNOWN_OPERATION, protocol }
  const slot = server.openExchanges.add(exchange)
  response.once('close', () => {
    server.openExchanges.remove(slot)
    context.onClientDisconnect()
  })
  return exchange
}

/** Sends a whole response with the headers of the context. Does nothing when the client has disconnected. */
export function sendResponse(
  { request, response, context }: Exchange,
  status: number,
  contentType: string,
  body: string | Uint8Array,
): void {
  if (context.isClientGone) return
  const length = Buffer.byteLength(body)
  context.answerBytes = length
  response.writeHead(status, { ...context.responseHeaders, 'content-type': contentType, 'content-length': length })
  // HTTP/1.1 drops the body of an answer to HEAD by itself, HTTP/2 fails on it.
  response.end(request.method === 'HEAD' ? undefined : body)
}
