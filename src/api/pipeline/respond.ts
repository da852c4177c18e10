import { constants } from 'node:http2'
import type { Readable } from 'node:stream'
import { Failure, type StatusCode } from '../../base/index.ts'
import type { Exchange } from '../exchange.ts'
import { drainRequest } from './body.ts'
import { failureHeaders, toFailure } from './errors.ts'
import type { Protocol } from './protocol.ts'
import type { ServerContext } from './server-context.ts'

/**
 * Sends whatever was thrown as a refusal, in place of an answer. If part of an answer went out already, the connection
 * is cut instead: half an answer must not look like a whole one.
 */
export function sendError(
  core: ServerContext,
  operation: string,
  wire: Protocol,
  exchange: Exchange,
  error: unknown,
): Failure {
  const failure = toFailure(core, error, exchange.call, operation)
  for (const [name, value] of Object.entries(failureHeaders(failure))) exchange.call.setHeader(name, value)
  if (exchange.response.headersSent) abortConnection(exchange)
  else wire.sendError(exchange, failure)
  drainRequest(exchange, core.limits.drainTimeoutMs)
  return failure
}

/** Closes the call and tells how it went. */
export function completeExchange(
  core: ServerContext,
  operation: string,
  wire: Protocol,
  { call }: Exchange,
  outcome: StatusCode | 'OK',
): void {
  call.close()
  core.observe?.({ operation, wire: wire.name, outcome, durationMs: performance.now() - call.startedMs })
}

/**
 * Writes one piece of a streamed answer and waits until the client has room for the next.
 *
 * @throws Failure CANCELLED when the client does not read for `slowReaderMs`, and when the call is over
 */
export async function writeFrame(exchange: Exchange, frame: Uint8Array, slowReaderMs: number): Promise<void> {
  const { response, call } = exchange
  // Thrown into the handler's loop, which closes the handler too.
  if (call.isDone) throw new Failure('CANCELLED', 'the call is over')
  if (response.write(frame)) return
  await new Promise<void>((resolve, reject) => {
    const slow = setTimeout(() => {
      settle(() => reject(new Failure('CANCELLED', 'the client does not read its answer')))
      abortConnection(exchange)
    }, slowReaderMs)
    const onDrain = () => settle(resolve)
    const onClose = () => settle(() => reject(new Failure('CANCELLED', 'the client went away')))
    const settle = (then: () => void) => {
      clearTimeout(slow)
      response.off('drain', onDrain).off('close', onClose)
      then()
    }
    response.on('drain', onDrain).on('close', onClose)
  })
}

/**
 * Writes a whole body as fast as the client reads it, without a promise per piece: that alone cost a fifth of the speed.
 *
 * @throws Failure CANCELLED when the client does not read for `slowReaderMs`, or goes away; and what the body fails with
 */
export function writeBody(exchange: Exchange, body: Readable, slowReaderMs: number): Promise<void> {
  const { response, call } = exchange
  return new Promise((resolve, reject) => {
    let slow: NodeJS.Timeout | undefined
    const settle = (failure?: unknown) => {
      clearTimeout(slow)
      response.off('drain', onDrain).off('close', onClose)
      body.destroy()
      if (failure === undefined) resolve()
      else reject(failure)
    }
    const onSlow = () => {
      settle(new Failure('CANCELLED', 'the client does not read its answer'))
      abortConnection(exchange)
    }
    const onDrain = () => {
      clearTimeout(slow)
      body.resume()
    }
    const onClose = () => settle(new Failure('CANCELLED', 'the client went away'))
    if (call.isDone) return onClose()
    if (body.destroyed) return settle(body.errored ?? new Failure('CANCELLED', 'the body was given up'))
    response.on('drain', onDrain).on('close', onClose)
    body.on('end', () => settle()).on('error', settle)
    body.on('data', (chunk: Buffer) => {
      if (response.write(chunk)) return
      body.pause()
      slow = setTimeout(onSlow, slowReaderMs)
    })
  })
}

/** Cuts an ended answer off when the client does not take the rest of it in time. */
export function enforceWriteTimeout(exchange: Exchange, slowReaderMs: number): void {
  const { response, call } = exchange
  if (call.isClientGone || response.writableFinished) return
  const slow = setTimeout(() => abortConnection(exchange), slowReaderMs)
  response.once('close', () => clearTimeout(slow))
}

/** Ends the connection (HTTP/1.1) or the stream (HTTP/2) at once. */
export function abortConnection({ request }: Exchange): void {
  if (request.stream === undefined) request.socket.destroy()
  else request.stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM)
}
