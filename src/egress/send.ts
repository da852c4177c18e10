import type { Agent } from 'undici'
import { decodeContent } from './decode-content.ts'
import { ResponseHandler, type ResponseHead } from './exchange.ts'
import { incomingHeaders } from './headers.ts'
import type { EgressRequest, EgressResponse } from './http-client.ts'
import { hostOf } from './policy.ts'
import { followRedirect, REDIRECTS_MAX, tooManyRedirects } from './redirect.ts'
import { retryStaleConnection } from './repeat.ts'
import { type GuardedAgent, type OutgoingRequest, parseAllowedUrl, toDispatchOptions } from './wire.ts'

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
