import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A request as a peer received it. */
export interface ReceivedRequest {
  readonly method: string
  readonly url: string
  readonly referer: string | undefined
}

export interface Peer extends AsyncDisposable {
  readonly url: string
  readonly port: number
  readonly requests: readonly ReceivedRequest[]
}

/**
 * Serves on the loopback interface and records each request. An error of the listener answers 500.
 * @param host the two are different sites
 */
export async function listen(
  serve: RequestListener | ((...args: Parameters<RequestListener>) => Promise<void>),
  host: 'localhost' | '127.0.0.1' = 'localhost',
): Promise<Peer> {
  const requests: ReceivedRequest[] = []
  const server = createServer(async (request, response) => {
    requests.push({ method: request.method ?? '', url: request.url ?? '', referer: request.headers.referer })
    try {
      await serve(request, response)
    } catch (error) {
      response.writeHead(500, { 'content-type': 'text/plain' }).end(String(error))
    }
  })
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://${host}:${port}`,
    port,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export async function readBody(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return text
}

/** What a peer answers. */
export interface Reply {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

export function send(response: ServerResponse, { status, headers, body }: Reply): void {
  response.writeHead(status, headers).end(body)
}

export function jsonReply(status: number, body: unknown): Reply {
  return { status, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
}

export function htmlReply(status: number, body: string, headers: Readonly<Record<string, string>> = {}): Reply {
  const page = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Test peer</title><body>${body}</body></html>`
  return { status, headers: { 'content-type': 'text/html; charset=utf-8', ...headers }, body: page }
}

/** Text as HTML text or attribute value. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
