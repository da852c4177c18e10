import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

/** One request as a receiver saw it. */
export interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** The bytes as text, for signature checks. */
  readonly body: string
}

/** What the receiver answers; `'hang-up'` closes the connection instead. */
export type ReceiverResponse =
  | 'hang-up'
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string }

/** A webhook receiver on loopback. */
export interface Receiver extends AsyncDisposable {
  readonly url: string
  readonly received: readonly Received[]
}

/** Starts a receiver that answers each request as `script` says; the number counts requests from 0. */
export async function startReceiver(
  script: (request: Received, index: number) => ReceiverResponse | Promise<ReceiverResponse> = () => ({ status: 204 }),
): Promise<Receiver> {
  const received: Received[] = []
  const server = createServer(async (request, response) => {
    const seen = { path: request.url ?? '', headers: request.headers, body: await textOf(request) }
    const index = received.push(seen) - 1
    const answer = await script(seen, index)
    if (answer === 'hang-up') return void request.socket.destroy()
    response.writeHead(answer.status, answer.headers).end(answer.body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/hook`,
    received,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}
