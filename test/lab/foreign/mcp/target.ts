import { createServer, type Server, request as sendRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { RunningProduct } from '../../../support/product.ts'
import { callRest, expectJson } from '../../../support/rest.ts'
import { mcpDefinition } from './definition.ts'

const CONTACTS = [
  { id: 1, name: 'Ada' },
  { id: 2, name: 'Grace' },
]
const ACTIVE_WITHIN_MS = 30_000
const POLL_MS = 100

/** A tool server of the running product, over an account of a third party in this process. */
export interface McpTarget extends AsyncDisposable {
  readonly url: string
  readonly token: string
  /** The same without a token, for programs that cannot send one. */
  readonly openUrl: string
  /** Requests that the third party got, as `GET /contacts`. */
  readonly requests: readonly string[]
}

/** Starts it; the tool server is read-only. */
export async function startMcpTarget({ url, bootstrap }: RunningProduct): Promise<McpTarget> {
  const requests: string[] = []
  const upstream = await listen(createServer(answerAs(requests)))
  const { environment_token: token, team_token: teamToken } = bootstrap
  const integration = await expectJson('POST', `${url}/integration`, teamToken, {
    name: 'mcp-contacts',
    config: mcpDefinition(addressOf(upstream)),
  })
  const installation = await expectJson('POST', `${url}/environment-integration`, token, {
    integration_id: integration.id,
  })
  const account = await expectJson('POST', `${url}/integrated-account`, token, {
    environment_integration_id: installation.id,
    tenant_id: 'agents',
    credentials: { api_key: 'canary-mcp-key' },
  })
  await untilActive(`${url}/integrated-account/${account.id}`, token)
  const server = await expectJson('POST', `${url}/tool-server`, token, {
    name: 'contacts',
    integrated_account_id: account.id,
    limits: { requests_per_minute: 10_000 },
  })
  const address = `${url}/mcp/${server.id}`
  const front = await listen(forwardTo(address, String(server.token)))
  return {
    url: address,
    token: String(server.token),
    openUrl: `${addressOf(front)}/mcp`,
    requests,
    async [Symbol.asyncDispose]() {
      for (const each of [front, upstream]) {
        each.closeAllConnections()
        each.close()
      }
    },
  }
}

function answerAs(requests: string[]): Parameters<typeof createServer>[1] & object {
  return ({ method = '', url = '' }, response) => {
    requests.push(`${method} ${url}`)
    const [path = ''] = url.split('?')
    const contact = CONTACTS.find(({ id }) => path === `/contacts/${id}`)
    const answers: Readonly<Record<string, unknown>> = {
      '/contacts': { items: CONTACTS },
      '/text': { text: 'This is a simple text response for testing.' },
    }
    const body = contact ?? answers[path]
    response.writeHead(body === undefined ? 422 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(body ?? { message: 'this always fails' }))
  }
}

/** Adds the token to every request and passes everything else on, `Host` and `Origin` included. */
function forwardTo(address: string, token: string): Server {
  return createServer((incoming, outgoing) => {
    const headers = { ...incoming.headers, authorization: `Bearer ${token}` }
    const sent = sendRequest(address, { method: incoming.method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(outgoing)
    })
    sent.on('error', () => outgoing.destroy())
    incoming.pipe(sent)
  })
}

async function listen(server: Server): Promise<Server> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

function addressOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function untilActive(address: string, token: string): Promise<void> {
  for (const end = Date.now() + ACTIVE_WITHIN_MS; Date.now() < end; ) {
    if ((await callRest('GET', address, token)).body.status === 'active') return
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  throw new Error('the account did not become active')
}
