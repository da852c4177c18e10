import { Readable } from 'node:stream'
import { Failure } from '../base/index.ts'
import { Exchange, type ResponseHead } from './exchange.ts'
import { upstreamFailure } from './failures.ts'
import { incomingHeaders } from './headers.ts'
import type { HttpStreamRequest, HttpStreamResponse } from './http-client.ts'
import { hostOf } from './policy.ts'
import { followRedirect, REDIRECTS_MAX, tooManyRedirects } from './redirect.ts'
import { onceOrTwice } from './repeat.ts'
import { type Outlet, requireAllowed, type WireRequest, wireRequest } from './wire.ts'

/** Makes the request and answers as soon as the response's head is there; see `HttpClient`. */
export async function stream(outlet: Outlet, request: HttpStreamRequest): Promise<HttpStreamResponse> {
  const { body, ...rest } = request
  if (body === undefined) return followed(outlet, rest)
  if (typeof body === 'string' || body instanceof Uint8Array) return followed(outlet, { ...rest, body })
  const source = body instanceof Readable ? body : Readable.from(body, { objectMode: false })
  // Without a listener, a source that is released because the call failed would end the process.
  source.on('error', () => {})
  return followed(outlet, { ...rest, body: source })
}

interface OpenAnswer {
  readonly head: ResponseHead
  readonly body: Readable
}

async function followed(outlet: Outlet, request: WireRequest): Promise<HttpStreamResponse> {
  const deadlineAt = performance.now() + request.timeoutMs
  const redirectsMax = Math.min(request.redirects ?? 0, REDIRECTS_MAX)
  let current = request
  for (let redirects = 0; ; redirects++) {
    const url = requireAllowed(outlet.policy, current.url)
    const asked = current
    const rules = { host: hostOf(url), method: asked.method, isSpent: asked.body instanceof Readable }
    const { head, body } = await onceOrTwice(rules, () => open(outlet, url, asked, deadlineAt))
    const next = redirectsMax === 0 ? undefined : followRedirect(asked, url, head)
    if (next === undefined) return { status: head.status, headers: incomingHeaders(head.headers), body }
    body.destroy()
    if (redirects === redirectsMax) throw tooManyRedirects(url, redirectsMax)
    current = next
  }
}

/** Resolves with the head; what happens after it happens to the body. */
function open(outlet: Outlet, url: URL, request: WireRequest, deadlineAt: number): Promise<OpenAnswer> {
  const wire = wireRequest(url, request)
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
    const exchange = new Exchange(
      { host, signal, deadlineAt, timeoutMs, idleMs, bytesMax },
      {
        head: (head) => resolve({ head, body }),
        chunk: (chunk) => body.push(chunk),
        end: () => body.push(null),
        fail: (error) => {
          reject(error)
          body.destroy(upstreamFailure(host, error))
        },
      },
    )
    if (wire.body instanceof Readable) wire.body.once('error', (error) => exchange.abort(sourceFailure(error)))
    outlet.agent.dispatch(wire, exchange)
  })
}

/** undici destroys a source whose call failed with the failure of the call; any other error is the source's own. */
function sourceFailure(error: Error): Error {
  const isOfCall = 'code' in error && String(error.code).startsWith('UND_ERR')
  return isOfCall ? error : new Failure('CANCELLED', 'the body of the request broke off', { cause: error })
}
