import type { Agent } from 'undici'
import { decodeContent } from './decode-content.ts'
import { Exchange, type ResponseHead } from './exchange.ts'
import { incomingHeaders } from './headers.ts'
import type { HttpRequest, HttpResponse } from './http-client.ts'
import { hostOf } from './policy.ts'
import { followRedirect, REDIRECTS_MAX, tooManyRedirects } from './redirect.ts'
import { onceOrTwice } from './repeat.ts'
import { type Outlet, requireAllowed, type WireRequest, wireRequest } from './wire.ts'

/** Makes the request, follows redirects, reads and decodes the whole answer; see `HttpClient`. */
export async function send(outlet: Outlet, request: HttpRequest): Promise<HttpResponse> {
  const deadlineAt = performance.now() + request.timeoutMs
  const redirectsMax = Math.min(request.redirects ?? 0, REDIRECTS_MAX)
  let current: WireRequest = request
  for (let redirects = 0; ; redirects++) {
    const url = requireAllowed(outlet.policy, current.url)
    const asked = current
    const rules = { host: hostOf(url), method: asked.method }
    const answer = await onceOrTwice(rules, () => exchangeWhole(outlet.agent, url, asked, deadlineAt))
    const next = redirectsMax === 0 ? undefined : followRedirect(asked, url, answer.head)
    if (next === undefined) return decoded(url, answer, request.maxResponseBytes)
    if (redirects === redirectsMax) throw tooManyRedirects(url, redirectsMax)
    current = next
  }
}

interface WholeAnswer {
  readonly head: ResponseHead
  readonly body: Buffer
}

function exchangeWhole(agent: Agent, url: URL, request: WireRequest, deadlineAt: number): Promise<WholeAnswer> {
  const wire = wireRequest(url, request)
  const { signal, timeoutMs, maxResponseBytes: bytesMax } = request
  const limits = { host: hostOf(url), signal, deadlineAt, timeoutMs, bytesMax }
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

async function decoded(url: URL, { head, body }: WholeAnswer, bytesMax: number): Promise<HttpResponse> {
  const headers = incomingHeaders(head.headers)
  if (headers['content-encoding'] === undefined) return { status: head.status, headers, body, url: url.href }
  const content = await decodeContent(hostOf(url), headers, body, bytesMax)
  return { status: head.status, ...content, url: url.href }
}
