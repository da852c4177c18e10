import { createServer, type Server, type Socket } from 'node:net'
import { createSecureContext, createServer as createTlsServer } from 'node:tls'

/** Takes over a connection when its HTTP version is known. */
export type OnProtocolDetected = (socket: Socket, version: 'h1' | 'h2') => void

/** A listening socket that detects the HTTP version of its connections. */
export interface ProtocolDetector {
  readonly server: Server
  /** Connections whose HTTP version is not known yet. */
  readonly undetected: ReadonlySet<Socket>
  /** Uses other keys for the connections from now on; absent without TLS. */
  readonly replaceKeys?: (keys: TlsKeys) => void
}

/** Certificate chain and private key, PEM. */
export interface TlsKeys {
  readonly cert: string
  readonly key: string
}

/** Why the keys cannot be used, such as a certificate of another key; `undefined` when they can. */
export function findTlsProblem(keys: TlsKeys): string | undefined {
  try {
    createSecureContext(keys)
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** Idle time of a connection before the first TCP keep-alive probe. */
const KEEP_ALIVE_PROBE_MS = 60_000

const SOCKET_OPTIONS = { noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_PROBE_MS }

/** The connection preface of HTTP/2 (RFC 9113, 3.4). */
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1')

/**
 * HTTP/1.1 and HTTP/2 with prior knowledge on one plaintext port, distinguished by the first bytes.
 *
 * @param detectionMs how long the first bytes of a connection may take
 */
export function createPlaintextDetector(detectionMs: number, onDecided: OnProtocolDetected): ProtocolDetector {
  const undecided = new Set<Socket>()
  const server = createServer(SOCKET_OPTIONS, (socket) => {
    undecided.add(socket)
    detectProtocol(socket, detectionMs, (version) => {
      undecided.delete(socket)
      if (version !== undefined) onDecided(socket, version)
    })
  })
  return { server, undetected: undecided }
}

/** Both versions over TLS, negotiated by ALPN in the handshake, which has to end within `handshakeMs`. */
export function createTlsDetector(keys: TlsKeys, handshakeMs: number, onDecided: OnProtocolDetected): ProtocolDetector {
  const options = { ...SOCKET_OPTIONS, ...keys, handshakeTimeout: handshakeMs, ALPNProtocols: ['h2', 'http/1.1'] }
  const server = createTlsServer(options, (socket) => onDecided(socket, socket.alpnProtocol === 'h2' ? 'h2' : 'h1'))
  // Node reports a failed or late handshake and leaves the connection open.
  server.on('tlsClientError', (_error, socket) => socket.destroy())
  return { server, undetected: new Set(), replaceKeys: (renewed) => server.setSecureContext(renewed) }
}

/**
 * Reads bytes until the version is certain, and puts them back. `P` may still become POST, PUT, PATCH or PRI.
 *
 * @param done called once; without a version when the connection ended or timed out
 */
function detectProtocol(socket: Socket, detectionMs: number, done: (version: 'h1' | 'h2' | undefined) => void): void {
  let seen: Buffer = Buffer.alloc(0)
  const timer = setTimeout(() => socket.destroy(), detectionMs)
  const settle = (version: 'h1' | 'h2' | undefined) => {
    clearTimeout(timer)
    socket.off('readable', onReadable).off('error', onError).off('close', onClose)
    done(version)
  }
  const onReadable = () => {
    for (let chunk: Buffer | null = socket.read(); chunk !== null; chunk = socket.read()) {
      seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk])
      const length = Math.min(seen.length, PREFACE.length)
      const couldBe = PREFACE.subarray(0, length).equals(seen.subarray(0, length))
      if (couldBe && length < PREFACE.length) continue
      socket.unshift(seen)
      return settle(couldBe ? 'h2' : 'h1')
    }
  }
  const onError = () => socket.destroy()
  const onClose = () => settle(undefined)
  socket.on('readable', onReadable).on('error', onError).on('close', onClose)
}
