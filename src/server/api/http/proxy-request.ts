import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import { codingOf, decompress, Failure, invalidFields } from '../../../foundation/base/index.ts'
import { findUnstorable, type Json } from '../../../foundation/json/index.ts'
import type { ApiRequest, Exchange } from '../exchange.ts'
import { parseRequestJsonInSlices } from '../messages/json-text.ts'
import { isStorable } from '../messages/storable.ts'
import { readCallerBody } from '../pipeline/admission.ts'
import { hasNoBody, sendContinue } from '../pipeline/body.ts'
import { isJsonType } from '../pipeline/media-type.ts'
import type { HttpExchange } from './routes.ts'

/** The body of a call: a value that the definition can read, or bytes that are streamed to the upstream. */
export type ProxyBody =
  | { readonly kind: 'value'; readonly value: Json | undefined }
  | { readonly kind: 'bytes'; readonly bytes: Readable; readonly headers: HeaderTexts }

type HeaderTexts = Readonly<Record<string, string>>

/** Headers that describe a body. */
const BODY_HEADERS = ['content-type', 'content-encoding', 'content-language', 'content-length'] as const

/**
 * JSON, or no content type, is read whole; a body of any other type is left to be streamed.
 *
 * @throws Failure as `decodeRawBody` and `parseRequestJson` do; INVALID_FIELD for what no message could hold
 */
export async function readProxyBody(exchange: HttpExchange): Promise<ProxyBody> {
  const {
    request,
    server: { limits },
  } = exchange
  if (hasNoBody(request)) return { kind: 'value', value: undefined }
  if (!isJsonType(request.headers['content-type'])) return { kind: 'bytes', ...streamedBody(exchange) }
  const body = await readCallerBody(exchange, limits.requestBytesMax)
  const bytes = await decompress(body, codingOf(request.headers['content-encoding']), limits.requestBytesMax)
  if (bytes.length === 0) return { kind: 'value', value: undefined }
  const value = await parseRequestJsonInSlices(bytes)
  if (!isStorable(value, 0))
    throw invalidFields(findUnstorable(value, 'body').map(({ path: field, ...rest }) => ({ field, ...rest })))
  return { kind: 'value', value }
}

/** The body as a stream of any size, with its headers. The deadline is paused until the body is complete. */
export function streamedBody(exchange: Exchange): { readonly bytes: Readable; readonly headers: HeaderTexts } {
  if (exchange.readsBody !== 'after_authentication') throw new Error(`${exchange.operationPath} streams no bodies`)
  sendContinue(exchange)
  return { bytes: arriving(exchange), headers: headersOf(exchange.request) }
}

/**
 * The bytes of a request as a separate stream: destroying it leaves the request open, so that its client still receives a
 * response that is sent before the end of the body.
 */
function arriving({ request, context }: Exchange): Readable {
  const onData = (chunk: Buffer) => {
    if (!bytes.push(chunk)) request.pause()
  }
  const onEnd = () => {
    // The request closes when it has ended, while its last bytes may still be buffered here.
    request.off('close', onBroken)
    context.resumeDeadline()
    bytes.push(null)
  }
  const onBroken = () => bytes.destroy(new Failure('CANCELLED', 'the client went away'))
  const bytes = new Readable({
    read: () => request.resume(),
    destroy(error, done) {
      // An error handler stays: a connection that breaks later must not become an uncaught error.
      request.off('data', onData).off('end', onEnd).off('close', onBroken).pause()
      done(error)
    },
  })
  context.pauseDeadline()
  request.on('data', onData).on('end', onEnd).on('error', onBroken).on('close', onBroken).pause()
  return bytes
}

function headersOf({ headers }: ApiRequest): HeaderTexts {
  return Object.fromEntries(
    BODY_HEADERS.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]] as const])),
  )
}

/** Prefix of headers that are sent to the upstream. */
const UPSTREAM_PREFIX = 'patchbay-upstream-'

/** Headers for the upstream, by their names there. */
export function upstreamHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const upstream: Record<string, string> = {}
  for (const name in headers) {
    const value = headers[name]
    if (!name.startsWith(UPSTREAM_PREFIX) || value === undefined) continue
    upstream[name.slice(UPSTREAM_PREFIX.length)] = Array.isArray(value) ? value.join(', ') : value
  }
  return upstream
}

/** The same for a call whose answer is streamed unchanged: the client also chooses its content coding. */
export function streamedHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const accepted = headers['accept-encoding']
  const upstream = upstreamHeaders(headers)
  return typeof accepted === 'string' ? { 'accept-encoding': accepted, ...upstream } : upstream
}
