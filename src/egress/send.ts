import type { Agent } from 'undici'
import { Failure } from '../base/index.ts'
import { decodeBody } from './decode.ts'
import { Exchange, type ResponseHead } from './exchange.ts'
import { isStaleConnection, upstreamFailure } from './failures.ts'
import { incomingHeaders } from './headers.ts'
import type { HttpRequest, HttpResponse } from './http-client.ts'
import { hostOf } from './policy.ts'
import { followRedirect } from './redirect.ts'
import { type Outlet, requireAllowed, wireRequest } from './wire.ts'

/** What a caller may ask for at most. */
const REDIRECTS_MAX = 3

/** Makes the request, follows redirects, reads and decodes the whole answer; see `HttpClient`. */
export async function send(outlet: Outlet, request: HttpRequest): Promise<HttpResponse> {
  const deadlineAt = performance.now() + request.timeoutMs
  const redirectsMax = Math.min(request.redirects ?? 0, REDIRECTS_MAX)
  let current = request
  for (let redirects = 0; ; redirects++) {
    const url = requireAllowed(outlet.policy, current.url)
    const answer = await exchangeOnceOrTwice(outlet.agent, url, current, deadlineAt)
    const next = redirectsMax === 0 ? undefined : followRedirect(current, url, answer.head)
    if (next === undefined) return decoded(url, answer, request.maxResponseBytes)
    if (redirects === redirectsMax) {
      throw new Failure('UPSTREAM_INVALID_RESPONSE', `"${hostOf(url)}" redirected more than ${redirectsMax} times`)
    }
    current = next
  }
}

interface WholeAnswer {
  readonly head: ResponseHead
  readonly body: Buffer
}

/** Methods that may be repeated without asking: a server that did the work twice is no different. */
const REPEATABLE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * A kept-alive connection may close under a request. If nothing of an answer arrived and repeating is harmless, the
 * request is made once more.
 */
async function exchangeOnceOrTwice(
  agent: Agent,
  url: URL,
  request: HttpRequest,
  deadlineAt: number,
): Promise<WholeAnswer> {
  try {
    return await exchangeWhole(agent, url, request, deadlineAt)
  } catch (error) {
    if (!REPEATABLE.has(request.method) || !isStaleConnection(error)) throw upstreamFailure(hostOf(url), error)
  }
  try {
    return await exchangeWhole(agent, url, request, deadlineAt)
  } catch (error) {
    throw upstreamFailure(hostOf(url), error)
  }
}

function exchangeWhole(agent: Agent, url: URL, request: HttpRequest, deadlineAt: number): Promise<WholeAnswer> {
  const wire = wireRequest(url, request)
  const limits = { host: hostOf(url), signal: request.signal, deadlineAt, bytesMax: request.maxResponseBytes }
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let head: ResponseHead | undefined
    const exchange = new Exchange(limits, {
      head: (arrived) => {
        head = arrived
      },
      chunk: (chunk) => chunks.push(chunk) > 0,
      end: () => {
        if (head) resolve({ head, body: joined(chunks) })
      },
      fail: reject,
    })
    agent.dispatch(wire, exchange)
  })
}

/** Most answers arrive in one piece, which needs no copy. */
function joined(chunks: readonly Buffer[]): Buffer {
  const [only] = chunks
  return chunks.length === 1 && only ? only : Buffer.concat(chunks)
}

async function decoded(url: URL, answer: WholeAnswer, bytesMax: number): Promise<HttpResponse> {
  const headers = incomingHeaders(answer.head.headers)
  const encoding = headers['content-encoding']
  if (encoding === undefined) return { status: answer.head.status, headers, body: answer.body, url: url.href }
  try {
    const body = await decodeBody(encoding, answer.body, bytesMax)
    delete headers['content-encoding']
    delete headers['content-length']
    return { status: answer.head.status, headers, body, url: url.href }
  } catch (error) {
    throw upstreamFailure(hostOf(url), error)
  }
}
