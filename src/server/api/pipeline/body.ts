import { constants } from 'node:http2'
import { Failure, releaseSlotWhile } from '../../../foundation/base/index.ts'
import type { ApiRequest, Exchange } from '../exchange.ts'

const EMPTY = Buffer.alloc(0)
const BUSY_RETRY_SECONDS = 5

/** How long a request body may take. */
export interface BodyLimits {
  readonly bodyIdleMs: number
  readonly bodyTotalMs: number
}

/**
 * Reads the whole body within limits of size and time. The slot of the request is free meanwhile.
 *
 * @param bytesMax before decompression
 * @param reserve called with the size before the body is held in memory, as far as that is known: the length that the request
 * names, then what has arrived. A failure that it returns ends the reading
 * @throws Failure REQUEST_TOO_LARGE as soon as that is known, REQUEST_STALLED when the body does not arrive in time,
 *   CANCELLED when the client disconnects before its end, that of `reserve`, RATE_LIMITED when its address has too many bytes in
 *   unauthenticated requests
 */
export async function readBody(
  exchange: ReadableExchange,
  limits: BodyLimits,
  bytesMax: number,
  reserve?: (bytes: number) => Failure | undefined,
): Promise<Buffer> {
  const { request, response, readsBody = 'never' } = exchange
  if (readsBody === 'never') throw new Error(`${exchange.operationPath} does not say when it reads bodies`)
  if (hasNoBody(request)) return EMPTY
  const named = Number(request.headers['content-length'] ?? 0)
  const rejection = named > bytesMax ? tooLarge(bytesMax) : reserve?.(named)
  if (rejection !== undefined) throw rejection
  sendContinue({ request, response })
  return await releaseSlotWhile(() => receiveBody(request, limits, bytesMax, reserve ?? openBudget(exchange)))
}

function receiveBody(
  request: ApiRequest,
  limits: BodyLimits,
  bytesMax: number,
  reserve: (bytes: number) => Failure | undefined,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const startedMs = performance.now()
    let size = 0
    const idle = setTimeout(() => settle(stalled()), limits.bodyIdleMs)
    const onData = (chunk: Buffer) => {
      chunks.push(chunk)
      size += chunk.length
      const rejection = size > bytesMax ? tooLarge(bytesMax) : reserve(size)
      if (rejection !== undefined) settle(rejection)
      else if (performance.now() - startedMs > limits.bodyTotalMs) settle(stalled())
      else idle.refresh()
    }
    const onEnd = () => settle()
    const onBroken = () => settle(new Failure('CANCELLED', 'the client went away'))
    const settle = (failure?: Failure) => {
      clearTimeout(idle)
      request.off('data', onData).off('end', onEnd).off('close', onBroken)
      // An error handler stays: a connection that breaks later must not become an uncaught error.
      if (failure !== undefined) reject(failure)
      else resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, size))
    }
    request.on('data', onData).on('end', onEnd).on('error', onBroken).on('close', onBroken)
  })
}

type ReadableExchange = Pick<Exchange, 'request' | 'response' | 'context' | 'server' | 'readsBody' | 'operationPath'>

/**
 * Counts the bytes that have arrived against the client address until the request is closed, unless its sender is authenticated.
 */
function openBudget(exchange: ReadableExchange): (bytes: number) => Failure | undefined {
  const { server, context } = exchange
  if (exchange.readsBody === 'after_authentication') return () => undefined
  let counted = 0
  return (bytes) => {
    if (bytes <= counted) return undefined
    const address = context.clientAddress(server.accessControl.trustedProxies)
    const release = server.unauthenticatedBytes.tryAcquire(address, bytes - counted)
    if (release === undefined) return tooManyBytes()
    counted = bytes
    context.onClose(release)
    return undefined
  }
}

function tooManyBytes(): Failure {
  const message = 'too much is being read of this address; send this again later'
  return new Failure('RATE_LIMITED', message, { retryAfterSeconds: BUSY_RETRY_SECONDS })
}

/** Answers `Expect: 100-continue`: the client sends the body now. */
export function sendContinue({ request, response }: Pick<Exchange, 'request' | 'response'>): void {
  if (request.headers.expect !== undefined) response.writeContinue()
}

/**
 * Drains the rest of an unread body after the response, so that the client can read it and reuse the connection; after
 * `drainTimeoutMs` the connection is aborted. Of an exchange with `drainBytesMax` no more than that is read.
 */
export function drainRequest(exchange: Exchange, lingerMs: number): void {
  const { request, drainBytesMax = Number.POSITIVE_INFINITY } = exchange
  if (request.complete || request.destroyed || hasNoBody(request)) return
  const linger = setTimeout(() => abortConnection(exchange), lingerMs)
  const done = () => clearTimeout(linger)
  request.on('error', done).once('end', done).once('close', done)
  let size = 0
  // Paused, not aborted: an abort would discard the response before the client has read it.
  if (drainBytesMax < Number.POSITIVE_INFINITY)
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > drainBytesMax) request.pause()
    })
  request.resume()
}

/** Tells from the head alone that no body follows. */
export function hasNoBody({ headers, stream }: ApiRequest): boolean {
  if (stream !== undefined) return 'endAfterHeaders' in stream && stream.endAfterHeaders === true
  return headers['transfer-encoding'] === undefined && (headers['content-length'] ?? '0') === '0'
}

function tooLarge(bytesMax: number): Failure {
  return new Failure('REQUEST_TOO_LARGE', `the request is larger than ${bytesMax} bytes`)
}

function stalled(): Failure {
  return new Failure('REQUEST_STALLED', 'the request body did not arrive in time')
}

/**
 * Ends the connection (HTTP/1.x) or the stream (HTTP/2) immediately.
 *
 * In HTTP/1.0, which is nginx's default, the end of a connection is the end of a body of unknown length: it is reset, so that half of an
 * answer is not taken for all of it. Over TLS it cannot be.
 */
export function abortConnection({ request: { stream, socket, httpVersionMajor, httpVersionMinor } }: Exchange): void {
  const endsBodies = httpVersionMajor === 1 && httpVersionMinor === 0
  if (stream !== undefined) stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM)
  else if (endsBodies && socket.encrypted !== true) socket.resetAndDestroy()
  else socket.destroy()
}
