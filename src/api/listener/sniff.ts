import type { Server as HttpServer } from 'node:http'
import type { Http2Server } from 'node:http2'
import { createServer, type Server, type Socket } from 'node:net'

/** What an HTTP/2 client says first (RFC 9113, 3.4). */
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1')

/** How long a connection must be silent before TCP asks whether its other end is still there. */
const KEEP_ALIVE_PROBE_MS = 60_000

/** A plaintext listener for both HTTP versions. */
export interface SniffingServer {
  readonly server: Server
  /** Connections that have not yet shown what they speak. */
  readonly undecided: ReadonlySet<Socket>
}

/**
 * Serves HTTP/1.1 and HTTP/2 with prior knowledge on one plaintext port, told apart by the first bytes.
 *
 * @param sniffMs how long a connection may take to show enough of them
 */
export function createSniffingServer(h1: HttpServer, h2: Http2Server, sniffMs: number): SniffingServer {
  const undecided = new Set<Socket>()
  // An http.Server that never listens itself starts its timeout checks and its idle tracking on this event.
  h1.emit('listening')
  const server = createServer(
    { noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_PROBE_MS },
    (socket) => {
      undecided.add(socket)
      decide(socket, sniffMs, (isHttp2) => (isHttp2 ? h2 : h1).emit('connection', socket))
      const forget = () => undecided.delete(socket)
      socket.once('close', forget).once('decided', forget)
    },
  )
  return { server, undecided }
}

/** Reads as little as settles the question and puts it back. `P` may still become POST, PUT, PATCH or PRI. */
function decide(socket: Socket, sniffMs: number, then: (isHttp2: boolean) => void): void {
  let seen: Buffer = Buffer.alloc(0)
  const fail = () => socket.destroy()
  const timer = setTimeout(fail, sniffMs)
  const onReadable = () => {
    for (let chunk: Buffer | null = socket.read(); chunk !== null; chunk = socket.read()) {
      seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk])
      const length = Math.min(seen.length, PREFACE.length)
      const couldBe = PREFACE.subarray(0, length).equals(seen.subarray(0, length))
      if (couldBe && length < PREFACE.length) continue
      stop()
      socket.unshift(seen)
      socket.emit('decided')
      then(couldBe)
      return
    }
  }
  const stop = () => {
    clearTimeout(timer)
    socket.off('readable', onReadable).off('error', fail).off('close', stop)
  }
  socket.on('readable', onReadable).on('error', fail).on('close', stop)
}
