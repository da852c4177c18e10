import { isIP } from 'node:net'
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { Failure } from '../../../foundation/base/index.ts'
import { type Json, JsonTextError, parseJsonInSlices } from '../../../foundation/json/index.ts'
import { describeError } from '../../../foundation/telemetry/index.ts'
import { type McpTools, serveMcp } from '../../../tools/mcp/index.ts'
import type { CorsOrigins } from '../cors.ts'
import { readCallerBody } from '../pipeline/admission.ts'
import { enforceWriteTimeout, writeBody } from '../pipeline/respond.ts'
import type { HttpExchange } from './routes.ts'

/** Largest request of a client. */
const BODY_BYTES_MAX = 1024 * 1024
const LOOPBACK_NAMES: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])

/** What tells the pages and addresses from which a client may be served. */
export interface McpOrigins {
  /** Of this service, without a trailing slash. */
  readonly publicUrl: () => string
  readonly corsOrigins: CorsOrigins
}

/**
 * Protects clients on loopback and private networks against pages of other sites (DNS rebinding): `Origin`, where a browser
 * sends it, and `Host` must be those of this service, of a configured origin, or loopback. An address in `Host` is no name that
 * could be bound anew, nor is one without a dot, such as that of an nginx `upstream`, which no registry has.
 *
 * @throws Failure ORIGIN_NOT_ALLOWED
 */
export function assertMcpOrigin({ context }: HttpExchange, { publicUrl, corsOrigins }: McpOrigins): void {
  const own = URL.parse(publicUrl())
  const known = [own, ...corsOrigins.map((origin) => URL.parse(origin))]
  const origin = context.header('origin')
  if (origin !== undefined && !corsOrigins.includes('*')) {
    const from = URL.parse(origin)
    const isKnown = from !== null && (isLoopback(from) || known.some((each) => each?.origin === from.origin))
    if (!isKnown) throw originNotAllowed('Origin')
  }
  const host = URL.parse(`http://${context.header(':authority') ?? context.header('host') ?? ''}`)
  if (host === null) throw originNotAllowed('Host')
  const isAddress = isIP(host.hostname.replace(/^\[|\]$/g, '')) !== 0
  const isLocalName = !host.hostname.includes('.')
  if (!isAddress && !isLocalName && !isLoopback(host) && !known.some((each) => each?.hostname === host.hostname))
    throw originNotAllowed('Host')
}

function isLoopback({ hostname }: URL): boolean {
  return LOOPBACK_NAMES.has(hostname)
}

function originNotAllowed(header: 'Origin' | 'Host'): Failure {
  const message = `the header ${header} names neither this service nor a configured origin`
  return new Failure('ORIGIN_NOT_ALLOWED', message)
}

/**
 * Serves one request of a client and sends the answer as it comes.
 *
 * @param open loads the tools once the body has arrived; it gets the body, absent when that is not JSON
 * @throws Failure REQUEST_TOO_LARGE, REQUEST_STALLED, CANCELLED; what `open` throws
 */
export async function exchangeMcp(
  exchange: HttpExchange,
  open: (body: Json | undefined) => McpTools | Promise<McpTools>,
): Promise<void> {
  const { request, response, context, server } = exchange
  const bytes = await readCallerBody(exchange, BODY_BYTES_MAX)
  const json = await jsonOf(bytes)
  const tools = await open(json)
  const web = new Request(`http://localhost${exchange.path}`, {
    method: 'POST',
    headers: headersOf({ ...request.headers, accept: ACCEPTED }),
    // What is parsed is not read again.
    ...(json === undefined && { body: new Uint8Array(bytes) }),
    signal: context.signal,
  })
  const answer = await serveMcp(web, json, tools, (error) =>
    server.logger.error({ request_id: context.requestId, ...describeError(error) }, 'a tool failed'),
  )
  if (context.isClientGone) return
  const isEvents = answer.headers.get('content-type')?.startsWith('text/event-stream') === true
  const headers = {
    ...context.responseHeaders,
    ...Object.fromEntries([...answer.headers].filter(([name]) => name !== 'connection')),
  }
  if (isEvents && !takesEvents(context.header('accept'))) {
    const body = lastEventData(await answer.text())
    if (context.isClientGone) return
    response.writeHead(answer.status, { ...headers, 'content-type': 'application/json', 'content-length': body.length })
    response.end(body)
    enforceWriteTimeout(exchange)
    return
  }
  if (isEvents) {
    // Proxies that buffer would hold back the events.
    response.writeHead(answer.status, { ...headers, 'x-accel-buffering': 'no' })
    if (answer.body !== null) await writeBody(exchange, Readable.fromWeb(answer.body as ReadableStream))
    response.end()
    return
  }
  const whole = Buffer.from(await answer.arrayBuffer())
  if (context.isClientGone) return
  response.writeHead(answer.status, { ...headers, 'content-length': whole.length })
  response.end(whole)
  enforceWriteTimeout(exchange)
}

function headersOf(given: HttpExchange['request']['headers']): Headers {
  const headers = new Headers()
  for (const [name, value] of Object.entries(given))
    if (!name.startsWith(':') && value !== undefined) headers.set(name, Array.isArray(value) ? value.join(', ') : value)
  return headers
}

/** The transport asks for both types by name (revision 2025-06-18); several clients name one of them, or none. */
const ACCEPTED = 'application/json, text/event-stream'

/** Whether a client said that it reads a stream of events; any other gets its response as JSON. */
function takesEvents(accept = ''): boolean {
  return /text\/(event-stream|\*)/i.test(accept)
}

/** The data of the last event, which is the response to the request. @throws Error when the stream ended without one */
function lastEventData(events: string): Buffer {
  const data = events.split(/\r?\n/).findLast((line) => /^data:\s*\{/.test(line))
  if (data === undefined) throw new Error('the stream of events ended without a response')
  return Buffer.from(data.slice('data:'.length).trim())
}

/** The body with its numbers as they are written; absent when it is not JSON. */
async function jsonOf(bytes: Buffer): Promise<Json | undefined> {
  try {
    return await parseJsonInSlices(bytes.toString())
  } catch (error) {
    if (error instanceof JsonTextError) return undefined
    throw error
  }
}
