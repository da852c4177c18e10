import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

/** A third party with a token endpoint (`/token`) whose answers a script writes, and an API (`/items/…`) that accepts any token. */
export interface TokenEndpoint extends AsyncDisposable {
  readonly tokenUrl: string
  readonly apiUrl: string
}

/** Answers one token request. @param refreshToken of the request */
export type AnswerToken = (refreshToken: string, response: ServerResponse) => void | Promise<void>

/** Starts one on a free port. */
export async function startTokenEndpoint(answer: AnswerToken): Promise<TokenEndpoint> {
  const server = createServer((request, response) => void route(request, response, answer))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    tokenUrl: `${url}/token`,
    apiUrl: url,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function route(request: IncomingMessage, response: ServerResponse, answer: AnswerToken): Promise<void> {
  if (request.url === '/token') {
    const form = new URLSearchParams(await text(request))
    await answer(form.get('refresh_token') ?? '', response)
  } else sendJson(response, 200, { id: 7 })
}

export function sendJson(response: ServerResponse, status: number, body: object, headers = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}
