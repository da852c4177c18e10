import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'

/** Connections that may wait for the server, enough for probes and the first clients; more are rejected. */
const WAITING_MAX = 1_024

/**
 * A port that a process binds before it starts anything else. Connections are accepted meanwhile and wait for the server that
 * takes the port over.
 */
export class BoundPort implements AsyncDisposable {
  readonly #server: Server
  readonly #waiting: readonly Socket[]
  #isHandedOver = false

  private constructor(server: Server, waiting: readonly Socket[]) {
    this.#server = server
    this.#waiting = waiting
  }

  /** Port 0 takes any free one. @throws the system's error, such as EADDRINUSE */
  static async bind(host: string, port: number): Promise<BoundPort> {
    const waiting: Socket[] = []
    const server = createServer((socket) => {
      waiting.push(socket)
      socket.on('error', () => socket.destroy())
    })
    server.maxConnections = WAITING_MAX
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(port, host, () => resolve())
    })
    return new BoundPort(server, waiting)
  }

  get address(): AddressInfo {
    return this.#server.address() as AddressInfo
  }

  /** Hands the port over to a server, with the connections that wait. */
  async handOver(server: Server): Promise<AddressInfo> {
    const { address } = this
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(this.#server, () => {
        server.off('error', reject)
        resolve()
      })
    })
    this.#isHandedOver = true
    for (const socket of this.#waiting) if (!socket.destroyed) server.emit('connection', socket)
    return address
  }

  /** Closes the port, unless a server has taken it over. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isHandedOver) return
    for (const socket of this.#waiting) socket.destroy()
    await new Promise<void>((resolve) => this.#server.close(() => resolve()))
  }
}
