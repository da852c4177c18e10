import type { IncomingHttpHeaders } from 'node:http'
import type { Http2Stream } from 'node:http2'
import type { Readable, Writable } from 'node:stream'
import type { Failure, StatusCode } from '../../foundation/base/index.ts'
import type { Database } from '../../foundation/database/index.ts'
import type { FairSemaphore, FairSlots } from '../../foundation/fair/index.ts'
import type { Logger } from '../../foundation/telemetry/index.ts'
import type { BodyReading } from './access.ts'
import type { ApiLimits } from './limits.ts'
import type { OpenRequests } from './open-requests.ts'
import type { AccessControl } from './pipeline/access-control.ts'
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

/** A request as the pipeline knows it: of HTTP its exchange, of a tool no more than this. */
export type ServiceRequest = Pick<Exchange, 'server' | 'context' | 'operationPath'>

/** How one protocol writes an error. */
export interface Protocol {
  readonly name: 'grpc' | 'grpc-web' | 'connect' | 'rest' | 'mcp'
  /** Sends a failure as the response; nothing was sent before. */
  sendError(exchange: Exchange, failure: Failure): void
  /** Ends an opened response, with the failure that ended the stream; absent: a response that has begun is aborted. */
  end?(exchange: Exchange, failure: Failure | undefined): void
}

/** What all requests of a server share: built once. */
export interface ServerContext {
  /** Path of the public address, without a trailing slash: what browsers are sent to begins with it. */
  readonly basePath: string
  readonly accessControl: AccessControl
  readonly limits: ApiLimits
  readonly logger: Logger
  /** Maps errors of other layers, such as a statement timeout of the database; undefined for an unknown one. */
  readonly translateError: ((error: unknown) => Failure | undefined) | undefined
  /** Where calls that store nothing have their entry of the audit log; `undefined`: no call has one. */
  readonly auditDatabase: Database | undefined
  readonly observe: ((observation: Observation) => void) | undefined
  /** Every request whose response is not closed. */
  readonly openExchanges: OpenRequests<Exchange>
  /** Streams in progress, which a drain ends before its deadline. */
  readonly openStreams: Set<RequestContext>
  /** Slots of requests that are worked on, shared by environments, teams and client addresses. */
  readonly requestSlots: FairSlots
  /** Bytes of large bodies in memory, shared by environments. */
  readonly bodyBytes: FairSemaphore
  /** Bytes of answers that clients have yet to read, shared by environments, teams and client addresses. */
  readonly answerBytes: FairSemaphore
  /** Slots of streams with a token, shared by environments. */
  readonly streamSlots: FairSemaphore
  /** Slots of streams without a token, shared by client addresses. */
  readonly publicStreamSlots: FairSemaphore
  /** Bytes of bodies whose senders are not authenticated; client addresses share them. */
  readonly unauthenticatedBytes: FairSemaphore
}

/** One completed request, for metrics. */
export interface Observation {
  /** Path of the operation or HTTP route, never the client's text. */
  readonly operation: string
  readonly outcome: StatusCode | 'OK'
  readonly durationMs: number
}
