import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Why a process, or a part of it, is not healthy. */
export interface HealthProblem {
  /** For machines, e.g. `DATABASE_DISK_FULL`. */
  readonly reason: string
  /** What is wrong and what to do. */
  readonly message: string
}

/** What the server shows. */
export interface MetricsServerSources {
  /** Metrics as text, and the content type of that text. */
  readonly metrics: { readonly contentType: string; text(): Promise<string> }
  /** Why the process is not healthy; `undefined` when it is. */
  readonly findProblem: () => HealthProblem | undefined
  /** Why the process should get no work at the moment; `undefined` when it is ready. */
  readonly findReadinessProblem: () => HealthProblem | undefined
  /** Why the scheduler is not healthy, in any process; `undefined` when it is. */
  readonly findSchedulerProblem: () => HealthProblem | undefined
}

/** More than scrapers and probes need. */
const CONNECTIONS_MAX = 64
const REQUEST_TIMEOUT_MS = 5_000

type PlainReply = readonly [status: number, contentType: string, body: string]

/**
 * Metrics and health server for operators: `GET /metrics`, `/livez`, `/readyz`, `/healthz` and `/healthz/scheduler`. Only
 * `/metrics` waits for anything, and not for long.
 *
 * It takes no token, so it has a port of its own, on loopback by default: the public port has no path that shows figures of
 * all tenants together.
 */
export class MetricsServer implements AsyncDisposable {
  readonly #sources: MetricsServerSources
  readonly #server = createServer({ requestTimeout: REQUEST_TIMEOUT_MS, headersTimeout: REQUEST_TIMEOUT_MS })

  constructor(sources: MetricsServerSources) {
    this.#sources = sources
    this.#server.maxConnections = CONNECTIONS_MAX
    this.#server.on('request', (request, response) => void this.#serve(request, response))
  }

  /** Takes over a bound port. Resolves with the address once connections are accepted. */
  listen(port: { handOver(server: Server): Promise<AddressInfo> }): Promise<AddressInfo> {
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
    const [status, contentType, body] = await this.#reply(request).catch(() => plain(500, 'try again\n'))
    response.writeHead(status, { 'content-type': contentType, 'cache-control': 'no-store' })
    response.end(request.method === 'HEAD' ? undefined : body)
  }

  async #reply({ method, url = '/' }: IncomingMessage): Promise<PlainReply> {
    if (method !== 'GET' && method !== 'HEAD') return plain(405, 'only GET\n')
    const [path] = url.split('?', 1)
    const { metrics, findProblem, findReadinessProblem, findSchedulerProblem } = this.#sources
    if (path === '/metrics') return [200, metrics.contentType, await metrics.text()]
    if (path === '/livez') return health(undefined)
    if (path === '/readyz') return health(findReadinessProblem())
    if (path === '/healthz') return health(findProblem())
    if (path !== '/healthz/scheduler')
      return plain(404, 'only /metrics, /livez, /readyz, /healthz and /healthz/scheduler\n')
    return health(findSchedulerProblem())
  }
}

function health(problem: HealthProblem | undefined): PlainReply {
  if (problem === undefined) return plain(200, 'SERVING\n')
  return plain(503, `NOT_SERVING: ${problem.reason}: ${problem.message}\n`)
}

function plain(status: number, body: string): PlainReply {
  return [status, 'text/plain; charset=utf-8', body]
}
