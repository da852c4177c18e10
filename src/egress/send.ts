import { Readable } from 'node:stream'
import type { Agent } from 'undici'
import { Failure } from '../base/index.ts'
import { retryStaleConnection, toUpstreamFailure } from './connection-errors.ts'
import { decodeContent } from './content-decoding.ts'
import { incomingHeaders } from './headers.ts'
import type { EgressRequest, EgressResponse, EgressStreamRequest, EgressStreamResponse } from './http-client.ts'
import {
  followRedirect,
  type GuardedAgent,
  type OutgoingRequest,
  parseAllowedUrl,
  REDIRECTS_MAX,
  toDispatchOptions,
  tooManyRedirects,
} from './outgoing-request.ts'
import { hostOf } from './policy.ts'
import { ResponseHandler, type ResponseHead } from './response-handler.ts'

/** Makes the request, follows redirects, reads and decodes the whole answer; see `HttpClient`. */
export async function send(outlet: GuardedAgent, request: EgressRequest): Promise<EgressResponse> {
  const deadlineAt = performance.now() + request.timeoutMs
  const redirectsMax = Math.min(request.redirects ?? 0, REDIRECTS_MAX)
  let current: OutgoingRequest = request
  for (let redirects = 0; ; redirects++) {
    const url = parseAllowedUrl(outlet.policy, current.url)
    const sent = current
    const rules = { host: hostOf(url), method: sent.method }
    const answer = await retryStaleConnection(rules, () => sendBuffered(outlet.agent, url, sent, deadlineAt))
    const next = redirectsMax === 0 ? undefined : followRedirect(sent, url, answer.head)
    if (next === undefined) return decodeResponseBody(url, answer, request.maxResponseBytes)
    if (redirects === redirectsMax) throw tooManyRedirects(url, redirectsMax)
    current = next
  }
}

interface BufferedResponse {
  readonly head: ResponseHead
  readonly body: Buffer
}

function sendBuffered(agent: Agent, url: URL, request: OutgoingRequest, deadlineAt: number): Promise<BufferedResponse> {
  const wire = toDispatchOptions(url, request)
  const { signal, timeoutMs, maxResponseBytes: bytesMax } = request
  const limits = { host: hostOf(url), signal, deadlineAt, timeoutMs, bytesMax }
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let head: ResponseHead | undefined
    const exchange = new ResponseHandler(limits, {
      head: (arrived) => {
        head = arrived
      },
      chunk: (chunk) => chunks.push(chunk) > 0,
      end: () => {
        if (head) resolve({ head, body: concatChunks(chunks) })
      },
      fail: reject,
    })
    agent.dispatch(wire, exchange)
  })
}

/** Most answers arrive in one piece, which needs no copy. */
function concatChunks(chunks: readonly Buffer[]): Buffer {
  const [only] = chunks
  return chunks.length === 1 && only ? only : Buffer.concat(chunks)
}

async function decodeResponseBody(
  url: URL,
  { head, body }: BufferedResponse,
  bytesMax: number,
): Promise<EgressResponse> {
  const headers = incomingHeaders(head.headers)
  if (headers['content-encoding'] === undefined) return { status: head.status, headers, body, url: url.href }
  const content = await decodeContent(hostOf(url), headers, body, bytesMax)
  return { status: head.status, ...content, url: url.href }
}

/** Makes the request and answers as soon as the response's head is there; see `HttpClient`. */
export async function stream(outlet: GuardedAgent, request: EgressStreamRequest): Promise<EgressStreamResponse> {
  const { body, ...rest } = request
  if (body === undefined) return streamFollowingRedirects(outlet, rest)
  if (typeof body === 'string' || body instanceof Uint8Array) return streamFollowingRedirects(outlet, { ...rest, body })
  const source = body instanceof Readable ? body : Readable.from(body, { objectMode: false })
  // Without a listener, a source that is released because the call failed would end the process.
  source.on('error', () => {})
  return streamFollowingRedirects(outlet, { ...rest, body: source })
}

interface OpenResponse {
  readonly head: ResponseHead
  readonly body: Readable
}

async function streamFollowingRedirects(outlet: GuardedAgent, request: OutgoingRequest): Promise<EgressStreamResponse> {
  const deadlineAt = performance.now() + request.timeoutMs
  const redirectsMax = Math.min(request.redirects ?? 0, REDIRECTS_MAX)
  let current = request
  for (let redirects = 0; ; redirects++) {
    const url = parseAllowedUrl(outlet.policy, current.url)
    const sent = current
    const rules = { host: hostOf(url), method: sent.method, isSpent: sent.body instanceof Readable }
    const { head, body } = await retryStaleConnection(rules, () => openResponse(outlet, url, sent, deadlineAt))
    const next = redirectsMax === 0 ? undefined : followRedirect(sent, url, head)
    if (next === undefined) return { status: head.status, headers: incomingHeaders(head.headers), body }
    body.destroy()
    if (redirects === redirectsMax) throw tooManyRedirects(url, redirectsMax)
    current = next
  }
}

/** Resolves with the head; what happens after it happens to the body. */
function openResponse(
  outlet: GuardedAgent,
  url: URL,
  request: OutgoingRequest,
  deadlineAt: number,
): Promise<OpenResponse> {
  const wire = toDispatchOptions(url, request)
  const host = hostOf(url)
  const { signal, timeoutMs, maxResponseBytes: bytesMax, idleTimeoutMs: idleMs } = request
  return new Promise((resolve, reject) => {
    const body = new Readable({
      read: () => exchange.resume(),
      destroy: (error, done) => {
        exchange.abort(new Failure('CANCELLED', 'the reader of the answer went away'))
        done(error)
      },
    })
    body.on('error', () => {})
    const exchange = new ResponseHandler(
      { host, signal, deadlineAt, timeoutMs, idleMs, bytesMax },
      {
        head: (head) => resolve({ head, body }),
        chunk: (chunk) => body.push(chunk),
        end: () => body.push(null),
        fail: (error) => {
          reject(error)
          body.destroy(toUpstreamFailure(host, error))
        },
      },
    )
    if (wire.body instanceof Readable) wire.body.once('error', (error) => exchange.abort(bodySourceFailure(error)))
    outlet.agent.dispatch(wire, exchange)
  })
}

/** undici destroys a source whose call failed with the failure of the call; any other error is the source's own. */
function bodySourceFailure(error: Error): Error {
  const isOfCall = 'code' in error && String(error.code).startsWith('UND_ERR')
  return isOfCall ? error : new Failure('CANCELLED', 'the body of the request broke off', { cause: error })
}
