import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'

/** A request as it arrived, body included. */
export interface SeenRequest {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** A local server under a test's control. */
export interface Upstream extends AsyncDisposable {
  readonly port: number
  readonly origin: string
  readonly seen: readonly SeenRequest[]
  /** Connections accepted so far. */
  readonly connections: () => number
}

/** Serves HTTP on loopback; every request is read to its end before the handler answers. */
export async function startUpstream(
  answer: (request: SeenRequest, response: ServerResponse) => void,
  host = '127.0.0.1',
): Promise<Upstream> {
  const seen: SeenRequest[] = []
  const listener: RequestListener = async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const arrived: SeenRequest = {
      method: request.method ?? '',
      url: request.url ?? '',
      headers: request.headers,
      body: Buffer.concat(chunks).toString(),
    }
    seen.push(arrived)
    answer(arrived, response)
  }
  return listening(createServer(listener), host, seen)
}

/** Serves whatever the script writes to each socket, HTTP or not. */
export async function startRawUpstream(script: (socket: Socket, first: Buffer) => void): Promise<Upstream> {
  const server = createTcpServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', (first) => script(socket, first))
  })
  return listening(server, '127.0.0.1', [])
}

async function listening(
  server: Server | ReturnType<typeof createTcpServer>,
  host: string,
  seen: readonly SeenRequest[],
): Promise<Upstream> {
  const sockets = new Set<Socket>()
  let connections = 0
  server.on('connection', (socket: Socket) => {
    connections++
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  const { port } = server.address() as AddressInfo
  const bracketed = host.includes(':') ? `[${host}]` : host
  return {
    port,
    origin: `http://${bracketed}:${port}`,
    seen,
    connections: () => connections,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
