import { createServer, type Server, type Socket } from 'node:net'
import { createSecureContext, createServer as createTlsServer } from 'node:tls'

/** Takes over a connection once it is known which HTTP it speaks. */
export type OnProtocolDetected = (socket: Socket, version: 'h1' | 'h2') => void

/** The socket the API listens on. */
export interface ProtocolDetector {
  readonly server: Server
  /** Connections that have not yet shown what they speak. */
  readonly undetected: ReadonlySet<Socket>
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

/** How long a connection must be silent before TCP asks whether its other end is still there. */
const KEEP_ALIVE_PROBE_MS = 60_000

const SOCKET_OPTIONS = { noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_PROBE_MS }

/** What an HTTP/2 client says first (RFC 9113, 3.4). */
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1')

/**
 * HTTP/1.1 and HTTP/2 with prior knowledge on one plaintext port, told apart by the first bytes.
 *
 * @param sniffMs how long a connection may take to show enough of them
 */
export function createPlaintextDetector(sniffMs: number, onDecided: OnProtocolDetected): ProtocolDetector {
  const undecided = new Set<Socket>()
  const server = createServer(SOCKET_OPTIONS, (socket) => {
    undecided.add(socket)
    detectProtocol(socket, sniffMs, (version) => {
      undecided.delete(socket)
      if (version !== undefined) onDecided(socket, version)
    })
  })
  return { server, undetected: undecided }
}

/** Both versions over TLS, agreed on in the handshake (ALPN), which has to end within `handshakeMs`. */
export function createTlsDetector(keys: TlsKeys, handshakeMs: number, onDecided: OnProtocolDetected): ProtocolDetector {
  const options = { ...SOCKET_OPTIONS, ...keys, handshakeTimeout: handshakeMs, ALPNProtocols: ['h2', 'http/1.1'] }
  const server = createTlsServer(options, (socket) => onDecided(socket, socket.alpnProtocol === 'h2' ? 'h2' : 'h1'))
  // Node only reports a failed or late handshake; the connection would stay.
  server.on('tlsClientError', (_error, socket) => socket.destroy())
  return { server, undetected: new Set() }
}

/**
 * Reads as little as settles the version and puts it back. `P` may still become POST, PUT, PATCH or PRI.
 *
 * @param done called once; without a version when the connection ended or ran out of time
 */
function detectProtocol(socket: Socket, sniffMs: number, done: (version: 'h1' | 'h2' | undefined) => void): void {
  let seen: Buffer = Buffer.alloc(0)
  const timer = setTimeout(() => socket.destroy(), sniffMs)
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
