import { constants } from 'node:http2'
import { Failure } from '../../base/index.ts'
import type { Exchange } from '../exchange.ts'

/**
 * Writes one piece of a streamed answer and waits until the client has room for the next.
 *
 * @throws Failure CANCELLED when the client does not read for `slowReaderMs`, and when the call is over
 */
export async function writeFrame(exchange: Exchange, frame: Uint8Array, slowReaderMs: number): Promise<void> {
  const { response, call } = exchange
  // Thrown into the handler's loop, which closes the handler too.
  if (call.isOver) throw new Failure('CANCELLED', 'the call is over')
  if (response.write(frame)) return
  await new Promise<void>((resolve, reject) => {
    const slow = setTimeout(() => {
      settle(() => reject(new Failure('CANCELLED', 'the client does not read its answer')))
      cut(exchange)
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

/** Cuts an ended answer off when the client does not take the rest of it in time. */
export function cutSlowReader(exchange: Exchange, slowReaderMs: number): void {
  const { response, call } = exchange
  if (call.isClientGone || response.writableFinished) return
  const slow = setTimeout(() => cut(exchange), slowReaderMs)
  response.once('close', () => clearTimeout(slow))
}

/** Ends the connection (HTTP/1.1) or the stream (HTTP/2) at once. */
export function cut({ request }: Exchange): void {
  if (request.stream === undefined) request.socket.destroy()
  else request.stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM)
}
