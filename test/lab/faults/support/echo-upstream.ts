import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { SECRET_ENCODINGS } from '../../../support/secret-encodings.ts'

/** An upstream that repeats everything it is sent: `/<mode>/…` chooses how. */
export interface EchoUpstream extends AsyncDisposable {
  readonly url: string
  readonly requests: number
}

/** Kinds of errors; each repeats everything in every encoding. */
export const ECHO_MODES = [
  '400',
  '401',
  '403',
  '404',
  '409',
  '422',
  '429',
  '500',
  '503',
  'text',
  'html',
  'form',
  'broken',
  'redirect',
  'redirect-loop',
  'found-in-200',
] as const
export type EchoMode = (typeof ECHO_MODES)[number]

/** What the token endpoint gives out, when it does. */
export interface GivenTokens {
  readonly access_token: string
  readonly refresh_token: string
  readonly id_token: string
  readonly session: string
  readonly expires_in: number
}

export async function startEchoUpstream(tokens: GivenTokens): Promise<EchoUpstream> {
  let requests = 0
  const server = createServer((request, response) => {
    requests += 1
    void textOf(request).then((body) => answer(request, response, body, tokens))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get requests() {
      return requests
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function answer(request: IncomingMessage, response: ServerResponse, body: string, tokens: GivenTokens): unknown {
  const [, mode = ''] = (request.url ?? '').split(/[/?]/)
  if (mode === 'token') return json(response, 200, tokens)
  if (mode === 'ok') return json(response, 200, { id: 'ok', items: [{ id: '1' }, { id: '2' }] })
  const said = everythingIn(request, body)
  const echo = said
    .map((value) =>
      Object.values(SECRET_ENCODINGS)
        .map((encode) => encode(value))
        .join(' | '),
    )
    .join('\n')
  // One header fits them as they are and percent-encoded.
  const short = said.map(encodeURIComponent).join(',').slice(0, 6_000)
  const headers = { 'x-echo': short, 'www-authenticate': `Bearer error="${short}"`, 'ratelimit-limit': short }
  switch (mode) {
    case 'repeat':
      return json(response, 200, { said, api_token: said.at(-1) })
    case 'text':
      return response.writeHead(400, { ...headers, 'content-type': 'text/plain' }).end(echo)
    case 'html':
      return response.writeHead(502, { ...headers, 'content-type': 'text/html' }).end(`<html>${echo}</html>`)
    case 'form':
      return response
        .writeHead(400, { ...headers, 'content-type': 'application/x-www-form-urlencoded' })
        .end(new URLSearchParams({ error: 'invalid_grant', error_description: echo.slice(0, 2_000) }).toString())
    case 'broken':
      return response.writeHead(200, { ...headers, 'content-type': 'application/json' }).end(`${echo}{"a`)
    case 'redirect': {
      const host = (said.at(-1) ?? 'x')
        .toLowerCase()
        .replace(/[^a-z0-9]+/g, '-')
        .slice(0, 60)
      return response.writeHead(302, { ...headers, location: `http://${host}.invalid/${short}` }).end()
    }
    case 'redirect-loop':
      return response.writeHead(302, { ...headers, location: `/redirect-loop/${short}?again` }).end()
    case 'found-in-200':
      return json(response, 200, { fault: { text: echo, said } }, headers)
    default: {
      const status = Number(mode) || 404
      const error = { message: echo, error_description: echo, errors: [{ message: echo, said }] }
      return json(response, status, { ...error, code: 'invalid_grant', [said.at(-1) ?? 'key']: said }, headers)
    }
  }
}

/** Values that look like secrets: what a real server quotes. */
function everythingIn(request: IncomingMessage, body: string): string[] {
  const { authorization = '' } = request.headers
  const parameters = [...new URL(request.url ?? '', 'http://x').searchParams.values()]
  const own = Object.entries(request.headers).filter(([name]) => name.startsWith('x-'))
  const form = body.includes('=') ? [...new URLSearchParams(body).values()] : []
  const values = [body, ...form, ...own.map(([, value]) => String(value)), ...parameters, authorization]
  return [...new Set([...values, authorization.replace(/^\w+ /, '')])].filter((value) => value.length > 3)
}

function json(response: ServerResponse, status: number, value: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { ...headers, 'content-type': 'application/json' }).end(JSON.stringify(value))
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}
