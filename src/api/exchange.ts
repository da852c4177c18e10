import type { IncomingHttpHeaders } from 'node:http'
import type { Http2Stream } from 'node:http2'
import type { Readable, Writable } from 'node:stream'
import type { Slab } from '../base/index.ts'
import { RequestContext } from './request-context.ts'

/** What the API uses of a request of `node:http` or of the compatibility layer of `node:http2`. */
export interface ApiRequest extends Readable {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly headers: IncomingHttpHeaders
  readonly httpVersionMajor: number
  readonly complete: boolean
  readonly socket: { readonly remoteAddress?: string | undefined; destroy(): unknown }
  /** HTTP/2 only. */
  readonly stream?: Http2Stream
}

/** What the API uses of a response of either. */
export interface ApiResponse extends Writable {
  readonly headersSent: boolean
  writeHead(status: number, headers: Readonly<Record<string, string | number>>): unknown
  writeContinue(): void
  addTrailers(trailers: Readonly<Record<string, string>>): void
}

/** One request on its way through the pipeline. */
export interface Exchange {
  readonly request: ApiRequest
  readonly response: ApiResponse
  readonly call: RequestContext
}

/**
 * Opens the call of a request; a client that goes away before the answer interrupts it.
 *
 * @param open holds the exchange until its response is closed
 */
export function openExchange(open: Slab<Exchange>, request: ApiRequest, response: ApiResponse): Exchange {
  const exchange = { request, response, call: new RequestContext(request) }
  const slot = open.add(exchange)
  response.once('close', () => {
    open.remove(slot)
    exchange.call.onClientDisconnect()
  })
  return exchange
}

/** Sends a whole answer with the call's headers. Nothing happens when the client is gone. */
export function sendResponse(
  { request, response, call }: Exchange,
  status: number,
  contentType: string,
  body: string | Uint8Array,
): void {
  if (call.isClientGone) return
  const length = Buffer.byteLength(body)
  response.writeHead(status, { ...call.responseHeaders, 'content-type': contentType, 'content-length': length })
  // HTTP/1.1 drops the body of an answer to HEAD by itself, HTTP/2 fails on it.
  response.end(request.method === 'HEAD' ? undefined : body)
}
