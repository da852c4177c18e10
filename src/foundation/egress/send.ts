import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { Failure } from '../base/errors.ts'
import { workOwner } from '../base/request-scope.ts'
import { type EgressPolicy, hostOf } from './address-policy.ts'
import { isStaleConnection, toUpstreamFailure } from './connection-errors.ts'
import type { ConnectionSlots } from './connection-slots.ts'
import { decodeContent } from './content-decoding.ts'
import { incomingCookies, incomingHeaders } from './headers.ts'
import {
  type EgressRequest,
  type EgressStreamRequest,
  followRedirect,
  type OutgoingRequest,
  parseAllowedUrl,
  REDIRECTS_MAX,
  toDispatchOptions,
  tooManyRedirects,
} from './request.ts'
import {
  cancelled,
  type EgressResponse,
  type EgressStreamResponse,
  noConnectionInTime,
  ResponseHandler,
  type ResponseHead,
} from './response.ts'

/** The connection pools, who uses them, and the policy that every URL is checked against. */
export interface GuardedAgent {
  /** What sends a request: to a proxy, or to the host itself. */
  agentOf(url: URL): Dispatcher
  /** Asks the policy about the name of a URL where connections do not: those of a proxy. */
  readonly assertAllowed: ((url: URL) => Promise<void>) | undefined
  readonly policy: EgressPolicy
  readonly connections: ConnectionSlots
}

/** Sends a request, follows redirects, reads and decodes the whole response; see `HttpClient`. */
export async function send(guarded: GuardedAgent, request: EgressRequest): Promise<EgressResponse> {
  const deadlineAt = performance.now() + request.timeoutMs
  const { url, response } = await sendFollowingRedirects(
    guarded,
    request,
    (target, sent) => readWhole(guarded, target, sent, deadlineAt),
    () => {},
  )
  const { head, body } = response
  const headers = incomingHeaders(head.headers)
  const common = { status: head.status, cookies: incomingCookies(head.headers), url: url.href }
  if (headers['content-encoding'] === undefined) return { ...common, headers, body }
  const content = await decodeContent(hostOf(url), headers, body, request)
  return { ...common, ...content }
}

/** Sends a request and resolves as soon as the head of the response is there; see `HttpClient`. */
export async function stream(guarded: GuardedAgent, request: EgressStreamRequest): Promise<EgressStreamResponse> {
  const deadlineAt = performance.now() + request.timeoutMs
  const { response } = await sendFollowingRedirects(
    guarded,
    withReadableBody(request),
    (url, sent) => openResponse(guarded, url, sent, deadlineAt),
    ({ body }) => body.destroy(),
  )
  const { head, body } = response
  return { status: head.status, headers: incomingHeaders(head.headers), body }
}

/** Sends a request to its URL, then to where redirects lead, each checked by the policy. @param discard of a redirect's response */
async function sendFollowingRedirects<Response extends { readonly head: ResponseHead }>(
  { policy, assertAllowed }: Pick<GuardedAgent, 'policy' | 'assertAllowed'>,
  request: OutgoingRequest,
  dispatch: (url: URL, request: OutgoingRequest) => Promise<Response>,
  discard: (response: Response) => void,
): Promise<{ readonly url: URL; readonly response: Response }> {
  const redirectsMax = Math.min(request.redirects ?? 0, REDIRECTS_MAX)
  let current = request
  for (let redirects = 0; ; redirects++) {
    const url = parseAllowedUrl(policy, current.url)
    await assertAllowed?.(url)
    const sent = current
    const response = await retryStaleConnection(url, sent, () => dispatch(url, sent))
    const next = redirectsMax === 0 ? undefined : redirected(sent, url, response, discard)
    if (next === undefined) return { url, response }
    if (redirects === redirectsMax) throw tooManyRedirects(url, redirectsMax)
    current = next
  }
}

/** The request to the target of a redirect, whose own response is discarded; `undefined` when the response is no redirect. */
function redirected<Response extends { readonly head: ResponseHead }>(
  request: OutgoingRequest,
  url: URL,
  response: Response,
  discard: (response: Response) => void,
): OutgoingRequest | undefined {
  try {
    const next = followRedirect(request, url, response.head)
    if (next !== undefined) discard(response)
    return next
  } catch (error) {
    discard(response)
    throw error
  }
}

/** Methods whose repetition has no effect (RFC 9110 §9.2.1). */
const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * Connection retry: a kept-alive connection may close under a request. When no byte of a response has arrived and the method
 * is safe, the request is sent once more on another connection.
 *
 * @throws Failure for every rejection of `dispatch`
 */
async function retryStaleConnection<Response>(
  url: URL,
  { method, body }: OutgoingRequest,
  dispatch: () => Promise<Response>,
): Promise<Response> {
  const isRepeatable = SAFE_METHODS.has(method) && !(body instanceof Readable)
  try {
    return await dispatch()
  } catch (error) {
    if (!isRepeatable || !isStaleConnection(error)) throw toUpstreamFailure(hostOf(url), error)
  }
  try {
    return await dispatch()
  } catch (error) {
    throw toUpstreamFailure(hostOf(url), error)
  }
}

interface WholeResponse {
  readonly head: ResponseHead
  readonly body: Buffer
}

/** Waits until the owner of the request may use one more connection. @returns gives it back */
async function acquireConnection(
  { connections }: GuardedAgent,
  url: URL,
  { signal, timeoutMs, owner = workOwner() }: OutgoingRequest,
  deadlineAt: number,
): Promise<() => void> {
  try {
    return await connections.acquire({ origin: url.origin, owner, signal, deadlineAt })
  } catch (error) {
    if (signal?.aborted === true) throw cancelled()
    if (performance.now() >= deadlineAt) throw noConnectionInTime({ host: hostOf(url), timeoutMs })
    throw error
  }
}

async function readWhole(
  guarded: GuardedAgent,
  url: URL,
  request: OutgoingRequest,
  deadlineAt: number,
): Promise<WholeResponse> {
  const options = toDispatchOptions(url, request)
  const { signal, timeoutMs, maxResponseBytes: bytesMax, reserveBytes, timings } = request
  const host = hostOf(url)
  const startedAt = performance.now()
  const limits = { host, signal, startedAt, deadlineAt, timeoutMs, bytesMax, reserveBytes, timings }
  const release = await acquireConnection(guarded, url, request, deadlineAt)
  const read = new Promise<WholeResponse>((resolve, reject) => {
    const chunks: Buffer[] = []
    let head: ResponseHead | undefined
    const handler = new ResponseHandler(limits, {
      head: (arrived) => {
        head = arrived
      },
      chunk: (chunk) => chunks.push(chunk) > 0,
      end: () => {
        if (head) resolve({ head, body: concatChunks(chunks) })
      },
      fail: reject,
    })
    guarded.agentOf(url).dispatch(options, handler)
  })
  return await read.finally(release)
}

/** Most responses arrive in one chunk, which needs no copy. */
function concatChunks(chunks: readonly Buffer[]): Buffer {
  const [only] = chunks
  return chunks.length === 1 && only ? only : Buffer.concat(chunks)
}

function withReadableBody({ body, ...request }: EgressStreamRequest): OutgoingRequest {
  if (body === undefined) return request
  if (typeof body === 'string' || body instanceof Uint8Array) return { ...request, body }
  const source = body instanceof Readable ? body : Readable.from(body, { objectMode: false })
  // Without a listener, a source that is destroyed because the call failed would end the process.
  source.on('error', () => {})
  return { ...request, body: source }
}

interface OpenResponse {
  readonly head: ResponseHead
  readonly body: Readable
}

/** Resolves with the head; later errors are errors of the body. The connection is held until the body is closed. */
async function openResponse(
  guarded: GuardedAgent,
  url: URL,
  request: OutgoingRequest,
  deadlineAt: number,
): Promise<OpenResponse> {
  const options = toDispatchOptions(url, request)
  const host = hostOf(url)
  const { signal, timeoutMs, maxResponseBytes: bytesMax, idleTimeoutMs: idleMs, timings } = request
  const startedAt = performance.now()
  const release = await acquireConnection(guarded, url, request, deadlineAt)
  return await new Promise((resolve, reject) => {
    const body = new Readable({
      read: () => handler.resume(),
      destroy: (error, done) => {
        if (!handler.hasEnded) handler.abort(new Failure('CANCELLED', 'the reader of the answer went away'))
        done(error)
      },
    })
    body.on('error', () => {})
    body.once('close', release)
    const handler = new ResponseHandler(
      { host, signal, startedAt, deadlineAt, timeoutMs, idleMs, bytesMax, timings },
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
    const { body: source } = options
    // It may have failed while the request waited for a connection.
    if (source instanceof Readable && source.errored) handler.abort(bodySourceFailure(source.errored))
    else if (source instanceof Readable) source.once('error', (error) => handler.abort(bodySourceFailure(error)))
    guarded.agentOf(url).dispatch(options, handler)
  })
}

/** undici destroys a source whose call failed with the error of the call; any other error is the source's own. */
function bodySourceFailure(error: Error): Error {
  const isOfCall = 'code' in error && String(error.code).startsWith('UND_ERR')
  return isOfCall ? error : new Failure('CANCELLED', 'the body of the request broke off', { cause: error })
}
