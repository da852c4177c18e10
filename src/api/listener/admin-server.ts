import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { BoundPort } from './bound-port.ts'

/** What whoever runs the process may look at. */
export interface AdminPages {
  /** Metrics as text, and the content type of that text. */
  readonly metrics: { readonly contentType: string; text(): Promise<string> }
  /** Why the process cannot work at the moment; `undefined` when it can. */
  readonly findProblem: () => string | undefined
  /** Why no process fires ticks; `undefined` when they fire. */
  readonly findSchedulerProblem: () => string | undefined
}

/** Scrapers and probes are few; whoever opens more connections is neither. */
const CONNECTIONS_MAX = 64
const REQUEST_TIMEOUT_MS = 5_000

type Answer = readonly [status: number, contentType: string, body: string]

/**
 * The port for operators of the process: `GET /metrics`, `/healthz` and `/healthz/scheduler`.
 *
 * It asks for no token, so it is a port of its own that listens on loopback unless told otherwise: the public port has no
 * address under which the figures of all tenants together could be read.
 */
export class AdminServer implements AsyncDisposable {
  readonly #pages: AdminPages
  readonly #server = createServer({ requestTimeout: REQUEST_TIMEOUT_MS, headersTimeout: REQUEST_TIMEOUT_MS })

  constructor(pages: AdminPages) {
    this.#pages = pages
    this.#server.maxConnections = CONNECTIONS_MAX
    this.#server.on('request', (request, response) => void this.#serve(request, response))
  }

  /** Resolves with the address once connections are accepted on the port. */
  listen(port: BoundPort): Promise<AddressInfo> {
    return port.handOver(this.#server)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#server.listening) return
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    this.#server.closeAllConnections()
    await closed
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.resume()
    const [status, contentType, body] = await this.#answer(request).catch(() => plain(500, 'try again\n'))
    response.writeHead(status, { 'content-type': contentType, 'cache-control': 'no-store' })
    response.end(request.method === 'HEAD' ? undefined : body)
  }

  async #answer({ method, url = '/' }: IncomingMessage): Promise<Answer> {
    if (method !== 'GET' && method !== 'HEAD') return plain(405, 'only GET\n')
    const [path] = url.split('?', 1)
    const { metrics, findProblem, findSchedulerProblem } = this.#pages
    if (path === '/metrics') return [200, metrics.contentType, await metrics.text()]
    if (path === '/healthz') return health(findProblem())
    if (path !== '/healthz/scheduler') return plain(404, 'only /metrics, /healthz and /healthz/scheduler\n')
    return health(findSchedulerProblem())
  }
}

function health(problem: string | undefined): Answer {
  return problem === undefined ? plain(200, 'SERVING\n') : plain(503, `NOT_SERVING: ${problem}\n`)
}

function plain(status: number, body: string): Answer {
  return [status, 'text/plain; charset=utf-8', body]
}
