import { createServer as createHttp1, type Server as Http1Server } from 'node:http'
import { createServer as createHttp2, createSecureServer, type Http2Server, type ServerHttp2Session } from 'node:http2'
import type { AddressInfo, Server, Socket } from 'node:net'
import type { Dispatch } from '../dispatch.ts'
import type { ApiLimits } from '../limits.ts'
import { createSniffingServer } from './sniff.ts'

/** Certificate chain and private key, PEM. */
export interface TlsKeys {
  readonly cert: string
  readonly key: string
}

/** How often a drain looks for connections that have become idle. */
const IDLE_SWEEP_MS = 50

/**
 * The one port: HTTP/1.1 and HTTP/2 in plaintext, or both by ALPN with TLS.
 *
 * Closing is graceful: new connections are refused, idle ones closed, busy ones told to finish (GOAWAY), and what is
 * left at the deadline is cut.
 */
export class Listener implements AsyncDisposable {
  readonly #server: Server
  readonly #h1: Http1Server | undefined
  readonly #undecided: ReadonlySet<Socket>
  readonly #sessions = new Set<ServerHttp2Session>()
  readonly #sockets = new Set<Socket>()

  constructor(dispatch: Dispatch, limits: ApiLimits, tls: TlsKeys | undefined) {
    const h2Options = {
      settings: { maxConcurrentStreams: limits.streamsPerConnectionMax, maxHeaderListSize: limits.headerBytesMax },
      maxHeaderListPairs: HEADER_PAIRS_MAX,
    }
    if (tls === undefined) {
      const h2 = this.#track(createHttp2(h2Options, dispatch).on('checkContinue', dispatch))
      this.#h1 = createH1(dispatch, limits)
      const { server, undecided } = createSniffingServer(this.#h1, h2, limits.sniffMs)
      this.#server = server
      this.#undecided = undecided
    } else {
      const secure = createSecureServer({ ...h2Options, ...tls, allowHTTP1: true }, dispatch).on(
        'checkContinue',
        dispatch,
      )
      this.#server = this.#track(secure)
      this.#h1 = undefined
      this.#undecided = new Set()
    }
    this.#server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
  }

  /** Resolves with the address once connections are accepted. Port 0 takes any free one. */
  listen(host: string, port: number): Promise<AddressInfo> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject).listen(port, host, () => {
        this.#server.off('error', reject)
        resolve(this.#server.address() as AddressInfo)
      })
    })
  }

  /** Closes within `deadlineMs`, the sooner the fewer calls are under way. */
  async close(deadlineMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    for (const socket of this.#undecided) socket.destroy()
    for (const session of this.#sessions) session.close()
    this.#h1?.closeIdleConnections()
    const sweep = setInterval(() => this.#h1?.closeIdleConnections(), IDLE_SWEEP_MS)
    const cut = setTimeout(() => this.#cut(), deadlineMs)
    await closed
    clearInterval(sweep)
    clearTimeout(cut)
    // Stops the interval that checks its timeouts.
    this.#h1?.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close(0)
  }

  #cut(): void {
    for (const session of this.#sessions) session.destroy()
    for (const socket of this.#sockets) socket.destroy()
  }

  #track<Server extends Http2Server | ReturnType<typeof createSecureServer>>(server: Server): Server {
    server.on('session', (session) => {
      this.#sessions.add(session)
      session.once('close', () => this.#sessions.delete(session))
    })
    return server
  }
}

const HEADER_PAIRS_MAX = 128

function createH1(dispatch: Dispatch, limits: ApiLimits): Http1Server {
  const server = createHttp1(
    {
      headersTimeout: limits.headersMs,
      requestTimeout: limits.headersMs + limits.bodyTotalMs + limits.lingerMs,
      keepAliveTimeout: limits.keepAliveMs,
      maxHeaderSize: limits.headerBytesMax,
      connectionsCheckingInterval: 1_000,
    },
    dispatch,
  )
  return server.on('checkContinue', dispatch)
}
