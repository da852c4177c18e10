import { Readable } from 'node:stream'
import { Failure } from '../base/index.ts'
import { Exchange } from './exchange.ts'
import { upstreamFailure } from './failures.ts'
import { incomingHeaders } from './headers.ts'
import type { HttpStreamRequest, HttpStreamResponse } from './http-client.ts'
import { hostOf } from './policy.ts'
import { type Outlet, requireAllowed, wireRequest } from './wire.ts'

/** Makes the request and answers as soon as the response's head is there; see `HttpClient`. */
export async function stream(outlet: Outlet, request: HttpStreamRequest): Promise<HttpStreamResponse> {
  const deadlineAt = performance.now() + request.timeoutMs
  const url = requireAllowed(outlet.policy, request.url)
  const wire = wireRequest(url, request)
  const limits = { host: hostOf(url), signal: request.signal, deadlineAt, bytesMax: request.maxResponseBytes }
  return new Promise((resolve, reject) => {
    const body = new Readable({
      read: () => exchange.resume(),
      destroy: (error, done) => {
        exchange.abort(new Failure('CANCELLED', 'the reader of the answer went away'))
        done(error)
      },
    })
    // Without a listener, a failure before the first read would end the process.
    body.on('error', () => {})
    const exchange = new Exchange(limits, {
      head: ({ status, headers }) => resolve({ status, headers: incomingHeaders(headers), body }),
      chunk: (chunk) => body.push(chunk),
      end: () => body.push(null),
      fail: (error) => {
        const failure = upstreamFailure(limits.host, error)
        reject(failure)
        body.destroy(failure)
      },
    })
    outlet.agent.dispatch(wire, exchange)
  })
}
