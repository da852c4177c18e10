import net from 'node:net'

const HEAD_END = Buffer.from('\r\n\r\n')
const CONTENT_LENGTH = /content-length: *(\d+)/i
const CHUNKED = /transfer-encoding: *chunked/i
const LAST_CHUNK = '0\r\n\r\n'

/**
 * A keep-alive HTTP/1.1 connection that sends ready-made bytes and reads as little of the answer as it can, so that a
 * measurement spends its two cores on the server rather than on a client library.
 */
export class Http1Connection {
  readonly #socket: net.Socket
  #pending: { resolve: (status: number) => void; reject: (error: Error) => void } | undefined
  #received: Buffer = Buffer.alloc(0)

  private constructor(socket: net.Socket) {
    this.#socket = socket
    socket.on('data', (chunk: Buffer) => this.#receive(chunk))
    socket.on('error', (error) => this.#pending?.reject(error))
    socket.on('close', () => this.#pending?.reject(new Error('the server closed the connection')))
  }

  static async open(host: string, port: number): Promise<Http1Connection> {
    const socket = net.connect({ host, port, noDelay: true })
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject))
    return new Http1Connection(socket)
  }

  /** Sends one request and resolves with the status once the whole answer is in. */
  send(request: Buffer): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#pending = { resolve, reject }
      this.#socket.write(request)
    })
  }

  close(): void {
    this.#pending = undefined
    this.#socket.destroy()
  }

  #receive(chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk])
    const headEnd = this.#received.indexOf(HEAD_END)
    if (headEnd === -1) return
    const head = this.#received.toString('latin1', 0, headEnd)
    const length = Number(CONTENT_LENGTH.exec(head)?.[1] ?? 0)
    if (this.#received.length < headEnd + HEAD_END.length + length) return
    if (
      CHUNKED.test(head) &&
      this.#received.toString('latin1', this.#received.length - LAST_CHUNK.length) !== LAST_CHUNK
    )
      return
    this.#received = Buffer.alloc(0)
    const pending = this.#pending
    this.#pending = undefined
    pending?.resolve(Number(head.slice(9, 12)))
  }
}

/** The bytes of a JSON request. */
export function jsonRequest(method: string, path: string, token: string, body: unknown): Buffer {
  const json = body === undefined ? '' : JSON.stringify(body)
  const head = [
    `${method} ${path} HTTP/1.1`,
    'host: bench',
    `authorization: Bearer ${token}`,
    ...(body === undefined ? [] : ['content-type: application/json', `content-length: ${Buffer.byteLength(json)}`]),
  ]
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${json}`)
}
