import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** What statements and new connections are answered with. */
export interface PostgresFault {
  readonly sqlState: string
  /** Statements that reach the server all the same. */
  readonly except?: RegExp
}

const SOCKET = '.s.PGSQL.5432'
/** After these PostgreSQL closes the connection: classes 08, 28 and 3D, shutdowns, and too many connections. */
const FATAL = /^(08|28|3D|F0|57P|25P|53300)/

/**
 * A real PostgreSQL behind a proxy of its wire protocol, which answers with any SQLSTATE that a test names: what a full disk, a
 * shutdown or a broken file would answer, in every place where a statement or a connection can fail.
 */
export class FaultyPostgres implements AsyncDisposable {
  /** Undefined: everything reaches the server. */
  fault: PostgresFault | undefined
  readonly #dir = mkdtempSync(join(tmpdir(), 'patchbay-faulty-'))
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #behind: string

  private constructor(behind: string) {
    this.#behind = behind
    this.#server = createServer((client) => this.#serve(client))
  }

  /** @param url of the database behind, on a Unix socket: `postgres://user@/name?host=…` */
  static async start(url: string): Promise<FaultyPostgres> {
    const host = new URLSearchParams(url.slice(url.indexOf('?'))).get('host')
    if (host === null) throw new Error(`${url} has no socket`)
    const proxy = new FaultyPostgres(join(host, SOCKET))
    await new Promise<void>((resolve) => proxy.#server.listen(join(proxy.#dir, SOCKET), resolve))
    return proxy
  }

  /** The URL of the same database through the proxy. */
  urlOf(url: string): string {
    return `${url.slice(0, url.indexOf('?'))}?host=${encodeURIComponent(this.#dir)}&port=5432`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve))
    for (const socket of this.#sockets) socket.destroy()
    await closed
    rmSync(this.#dir, { recursive: true, force: true })
  }

  #serve(client: Socket): void {
    const server = connect(this.#behind)
    for (const socket of [client, server]) {
      this.#sockets.add(socket)
      socket.on('error', () => socket.destroy())
      socket.on('close', () => {
        this.#sockets.delete(socket)
        client.destroy()
        server.destroy()
      })
    }
    server.pipe(client)
    const conversation = new Conversation(client, server, () => this.fault)
    client.on('data', (bytes) => conversation.read(bytes))
  }
}

/** One connection: reads whole messages of the client, and passes on or answers each. */
class Conversation {
  readonly #client: Socket
  readonly #server: Socket
  readonly #fault: () => PostgresFault | undefined
  #buffered = Buffer.alloc(0)
  #hasStarted = false
  /** Texts of prepared statements by name. */
  readonly #texts = new Map<string, string>()
  /** The fault of the messages until the next Sync. */
  #failing: PostgresFault | undefined

  constructor(client: Socket, server: Socket, fault: () => PostgresFault | undefined) {
    this.#client = client
    this.#server = server
    this.#fault = fault
  }

  read(bytes: Buffer): void {
    this.#buffered = Buffer.concat([this.#buffered, bytes])
    for (;;) {
      const typeBytes = this.#hasStarted ? 1 : 0 // the first message has no type
      if (this.#buffered.length < typeBytes + 4) return
      const length = typeBytes + this.#buffered.readInt32BE(typeBytes)
      if (this.#buffered.length < length) return
      this.#take(this.#buffered.subarray(0, length))
      this.#buffered = this.#buffered.subarray(length)
    }
  }

  #take(message: Buffer): void {
    if (!this.#hasStarted) {
      this.#hasStarted = true
      const fault = this.#fault()
      if (fault !== undefined && FATAL.test(fault.sqlState) && fault.except === undefined) this.#answer(fault)
      else this.#server.write(message)
      return
    }
    const type = String.fromCharCode(message[0] ?? 0)
    const text = this.#textOf(type, message)
    if (text !== undefined && this.#failing === undefined) {
      const fault = this.#fault()
      if (fault !== undefined && !fault.except?.test(text)) this.#failing = fault
    }
    if (this.#failing === undefined) this.#server.write(message)
    else if (type === 'S' || type === 'Q') {
      this.#answer(this.#failing)
      this.#failing = undefined
    }
  }

  /** The statement that a message is about; `undefined`: none. */
  #textOf(type: string, message: Buffer): string | undefined {
    const strings = message.subarray(5).toString('latin1').split('\0')
    const [first = '', second = ''] = strings
    if (type === 'Q') return first
    if (type === 'P') this.#texts.set(first, second)
    if (type === 'P') return second
    return type === 'B' ? (this.#texts.get(second) ?? '') : undefined
  }

  #answer({ sqlState }: PostgresFault): void {
    const isFatal = FATAL.test(sqlState)
    const severity = isFatal ? 'FATAL' : 'ERROR'
    const fields = `S${severity}\0V${severity}\0C${sqlState}\0Mfault of the test\0Rtest\0\0`
    this.#client.write(Buffer.concat([messageOf('E', Buffer.from(fields)), ...(isFatal ? [] : [READY])]))
    if (isFatal) this.#client.end()
  }
}

function messageOf(type: string, body: Buffer): Buffer {
  const length = Buffer.alloc(4)
  length.writeInt32BE(body.length + 4)
  return Buffer.concat([Buffer.from(type), length, body])
}

/** ReadyForQuery, outside of a transaction. */
const READY = messageOf('Z', Buffer.from('I'))
