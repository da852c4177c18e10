import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import type { Json } from '../../src/foundation/json/index.ts'

/** A request that a test expects, and what it is answered. */
export interface ScriptedExchange {
  /** `GET /items?page=2`: method, path and query exactly as they are on the wire. */
  readonly request: string
  /** Headers that must have these values; `null`: must be absent. Others may be anything. */
  readonly headers?: Readonly<Record<string, string | null>>
  /** A string is compared as text, anything else as JSON. */
  readonly body?: Json
  readonly answer: ScriptedAnswer
  /** How often the exchange may be used; it must be used exactly that often. Default 1. */
  readonly times?: number
}

export interface ScriptedAnswer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  readonly json?: Json
  readonly text?: string
  readonly bytes?: Uint8Array
  /** Closes the connection without an answer. */
  readonly hangUp?: boolean
  /** Never answers. */
  readonly hang?: boolean
}

/** A request as it arrived. */
interface RecordedRequest {
  readonly method: string
  /** Path and query as they were on the wire. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A third party on a loopback port that answers what a test wrote down, and nothing else. */
export interface Upstream extends AsyncDisposable {
  /** `http://127.0.0.1:<port>` */
  readonly url: string
  /** Everything that arrived, in order, expected or not. */
  readonly requests: readonly RecordedRequest[]
  /** Adds exchanges. A request takes the first unused one that fits it. */
  script(...exchanges: readonly ScriptedExchange[]): void
  /** Fails when a request was not expected or an exchange was not used; forgets everything. Call it after each test. */
  verify(): void
}

/** Status of the answer to a request that no exchange expects; nothing real answers with it. */
const UNEXPECTED = 599

interface Pending {
  readonly exchange: ScriptedExchange
  left: number
}

/** Starts an upstream on a free port; close it with `await using` or in `afterAll`. */
export async function startUpstream(): Promise<Upstream> {
  let pending: Pending[] = []
  let requests: RecordedRequest[] = []
  let problems: string[] = []
  const server = createServer((incoming, outgoing) => {
    void record(incoming).then((request) => {
      requests.push(request)
      const found = pending.find(({ exchange, left }) => left > 0 && findMismatch(exchange, request) === undefined)
      if (found === undefined) {
        problems.push(describeUnexpected(request, pending))
        respond(outgoing, { status: UNEXPECTED, json: { message: 'no exchange expects this request' } })
      } else {
        found.left -= 1
        if (found.exchange.answer.hang !== true) respond(outgoing, found.exchange.answer)
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    get requests() {
      return requests
    },
    script: (...exchanges) => {
      pending.push(...exchanges.map((exchange) => ({ exchange, left: exchange.times ?? 1 })))
    },
    verify: () => {
      const unused = pending
        .filter(({ left }) => left > 0)
        .map(({ exchange, left }) => `unused (${left}×): ${exchange.request}`)
      const all = [...problems, ...unused]
      pending = []
      requests = []
      problems = []
      if (all.length > 0) throw new Error(`the scripted upstream complains:\n${all.join('\n')}`)
    },
    [Symbol.asyncDispose]: () => {
      server.closeAllConnections()
      return new Promise<void>((resolve, reject) => server.close((error) => (error ? reject(error) : resolve())))
    },
  }
}

async function record(incoming: IncomingMessage): Promise<RecordedRequest> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  const headers = Object.entries(incoming.headers).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.join(', ') : (value ?? ''),
  ])
  return {
    method: incoming.method ?? '',
    url: incoming.url ?? '',
    headers: Object.fromEntries(headers),
    body: Buffer.concat(chunks).toString(),
  }
}

/** The first difference between what is expected and what came. */
function findMismatch(exchange: ScriptedExchange, request: RecordedRequest): string | undefined {
  const line = `${request.method} ${request.url}`
  if (line !== exchange.request) return `expected ${exchange.request}`
  for (const [name, value] of Object.entries(exchange.headers ?? {})) {
    const actual = request.headers[name.toLowerCase()] ?? null
    if (actual !== value) return `expected header ${name}: ${value}, got ${actual}`
  }
  if (exchange.body === undefined || sameBody(exchange.body, request.body)) return undefined
  return `expected body ${JSON.stringify(exchange.body)}`
}

function sameBody(expected: Json, actual: string): boolean {
  if (typeof expected === 'string') return expected === actual
  try {
    return isDeepStrictEqual(JSON.parse(actual), expected)
  } catch {
    return false
  }
}

function describeUnexpected(request: RecordedRequest, pending: readonly Pending[]): string {
  const reasons = pending.filter(({ left }) => left > 0).map(({ exchange }) => `  ${findMismatch(exchange, request)}`)
  return [`unexpected: ${request.method} ${request.url} ${request.body}`, ...reasons].join('\n')
}

function respond(outgoing: ServerResponse, answer: ScriptedAnswer): void {
  if (answer.hangUp === true) {
    outgoing.destroy()
    return
  }
  const type = answer.json === undefined ? {} : { 'content-type': 'application/json' }
  outgoing.writeHead(answer.status ?? 200, { ...type, ...(answer.headers as Record<string, string | string[]>) })
  outgoing.end(answer.json === undefined ? (answer.bytes ?? answer.text ?? '') : JSON.stringify(answer.json))
}
