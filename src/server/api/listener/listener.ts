import {
  createServer as createHttp1,
  type Server as Http1Server,
  type IncomingMessage,
  ServerResponse,
} from 'node:http'
import { createServer as createHttp2, type Http2Server, type ServerHttp2Session } from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import type { Dispatch } from '../dispatch.ts'
import type { Exchange } from '../exchange.ts'
import type { ApiLimits } from '../limits.ts'
import type { OpenRequests } from '../open-requests.ts'
import type { BoundPort } from './bound-port.ts'
import {
  createPlaintextDetector,
  createTlsDetector,
  type OnProtocolDetected,
  type ProtocolDetector,
  type TlsKeys,
} from './protocol-detection.ts'

/** Interval at which a drain closes connections that have become idle. */
const IDLE_SWEEP_MS = 50

/** Interval at which timeouts of HTTP/1.1 connections are checked. */
const TIMEOUT_CHECK_MS = 1_000

/** Limit of the header fields of one HTTP/2 request. */
const HEADER_PAIRS_MAX = 128
/** Node counts ended streams until they are garbage-collected: its default of 10 MB rejects a fast client far below the stream limit. */
const SESSION_MEGABYTES_MAX = 64

/**
 * The one port: HTTP/1.1 and HTTP/2, in plaintext or over TLS.
 *
 * Shutdown is graceful: `endReuse` asks HTTP/1.1 clients with `Connection: close` to send their next request elsewhere;
 * then `close` rejects new connections, closes idle ones, sends GOAWAY to busy ones, and aborts the rest at the deadline.
 */
export class Listener implements AsyncDisposable {
  readonly #front: ProtocolDetector
  readonly #h1: Http1Server
  readonly #h2: Http2Server
  readonly #sessions = new Set<ServerHttp2Session>()
  readonly #sockets = new Set<Socket>()
  readonly #openExchanges: OpenRequests<Exchange>
  #isReuseEnded = false

  constructor(dispatch: Dispatch, openExchanges: OpenRequests<Exchange>, limits: ApiLimits, tls: TlsKeys | undefined) {
    this.#openExchanges = openExchanges
    this.#h1 = createH1((request, response) => {
      if (this.#isReuseEnded) response.shouldKeepAlive = false
      dispatch(request, response)
    }, limits)
    this.#h2 = createH2(dispatch, limits)
    this.#h2.on('session', (session) => {
      this.#sessions.add(session)
      session.once('close', () => this.#sessions.delete(session))
      // Sends GOAWAY and lets open streams finish.
      session.setTimeout(limits.sessionIdleMs, () => session.close())
    })
    const onDecided: OnProtocolDetected = (socket, version) =>
      (version === 'h2' ? this.#h2 : this.#h1).emit('connection', socket)
    this.#front =
      tls === undefined
        ? createPlaintextDetector(limits.protocolDetectionMs, onDecided)
        : createTlsDetector(tls, limits.protocolDetectionMs, onDecided)
    this.#front.server.maxConnections = limits.connectionsMax
    this.#front.server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
  }

  /** Resolves with the address once connections are accepted on the port. */
  listen(port: BoundPort): Promise<AddressInfo> {
    return port.handOver(this.#front.server)
  }

  /** Uses other keys for the connections from now on. */
  replaceTlsKeys(keys: TlsKeys): void {
    this.#front.replaceKeys?.(keys)
  }

  /** Closes each HTTP/1.1 connection after its next response, which says so: no later request is lost. */
  endReuse(): void {
    this.#isReuseEnded = true
    for (const { response } of this.#openExchanges)
      if (response instanceof ServerResponse && !response.headersSent) response.shouldKeepAlive = false
  }

  /** Closes within `deadlineMs`, or as soon as no request is open. */
  async close(deadlineMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#front.server.close(() => resolve()))
    for (const socket of this.#front.undetected) socket.destroy()
    for (const session of this.#sessions) session.close()
    this.#h1.closeIdleConnections()
    const sweep = setInterval(() => this.#h1.closeIdleConnections(), IDLE_SWEEP_MS)
    const cut = setTimeout(() => this.#cut(), deadlineMs)
    await closed
    clearInterval(sweep)
    clearTimeout(cut)
    // Stops the interval that checks its timeouts.
    this.#h1.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close(0)
  }

  #cut(): void {
    for (const session of this.#sessions) session.destroy()
    for (const socket of this.#sockets) socket.destroy()
  }
}

function createH1(
  dispatch: (request: IncomingMessage, response: ServerResponse) => void,
  limits: ApiLimits,
): Http1Server {
  const options = {
    headersTimeout: limits.headersMs,
    // The pipeline limits the body more closely; this limit is for requests that never reach it.
    requestTimeout: limits.headersMs + limits.streamedBodyMs + limits.drainTimeoutMs,
    keepAliveTimeout: limits.keepAliveMs,
    maxHeaderSize: limits.headerBytesMax,
    connectionsCheckingInterval: TIMEOUT_CHECK_MS,
  }
  const server = createHttp1(options, dispatch).on('checkContinue', dispatch)
  // A server that never listens itself starts its timeout checks and its idle tracking on this event.
  server.emit('listening')
  return server
}

function createH2(dispatch: Dispatch, limits: ApiLimits): Http2Server {
  const settings = { maxConcurrentStreams: limits.streamsPerConnectionMax, maxHeaderListSize: limits.headerBytesMax }
  const session = { maxHeaderListPairs: HEADER_PAIRS_MAX, maxSessionMemory: SESSION_MEGABYTES_MAX }
  return createHttp2({ settings, ...session }, dispatch).on('checkContinue', dispatch)
}
