import type { Failure } from '../../base/index.ts'
import type { Exchange } from '../exchange.ts'
import type { Operation } from '../operation.ts'
import type { ResultInit } from '../service.ts'
import { ACCEPTED_ENCODINGS } from './compression.ts'
import { connectErrorJson } from './connect.ts'
import { decodeSingleFrame, encodeFrame, FRAME_HEADER_BYTES } from './envelope.ts'
import { decodePayload, encodePayload, type MessageFormat } from './payload.ts'
import type { StreamProtocol } from './wire.ts'

/** Marks the last envelope of an answer, whose payload says how the stream ended. */
const FLAG_END = 0x02

/** The Connect protocol for streams: always HTTP 200, the outcome in the last envelope. */
export function createConnectStreamProtocol(codec: MessageFormat): StreamProtocol {
  const open = ({ response, call }: Exchange) => {
    response.writeHead(200, {
      ...call.responseHeaders,
      'content-type': `application/connect+${codec}`,
      'connect-accept-encoding': ACCEPTED_ENCODINGS,
    })
  }
  const frame = async (operation: Operation, result: ResultInit) =>
    encodeFrame(0, await encodePayload(operation, codec, result))
  const end = ({ response, call }: Exchange, failure: Failure | undefined) => {
    const outcome = failure === undefined ? {} : { error: connectErrorJson(failure) }
    if (!call.isClientGone) response.end(encodeFrame(FLAG_END, Buffer.from(JSON.stringify(outcome))))
  }
  return {
    name: 'connect',
    bodyBytesMax: (bytesMax) => bytesMax + FRAME_HEADER_BYTES,
    async decode(operation, { call }, body, bytesMax) {
      const payload = await decodeSingleFrame(body, call.requestHeader('connect-content-encoding'), bytesMax)
      return decodePayload(operation, codec, payload)
    },
    sendError(exchange, failure) {
      if (exchange.call.isClientGone) return
      open(exchange)
      end(exchange, failure)
    },
    open,
    frame,
    end,
  }
}
