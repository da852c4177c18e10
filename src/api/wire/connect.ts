import { type Failure, printJson } from '../../base/index.ts'
import { type Exchange, sendAnswer } from '../exchange.ts'
import { detailBytes, detailJson, rpcDetails } from '../failure/details.ts'
import { connectCode, connectStatus } from '../failure/status.ts'
import { encodeJson } from '../message/codec.ts'
import type { Operation } from '../operation.ts'
import type { ResultInit } from '../service.ts'
import { codingOf, decompress } from './compression.ts'
import { type Codec, decodePayload, encodePayload } from './payload.ts'
import type { UnaryWire } from './wire.ts'

/** The Connect protocol for unary calls: plain HTTP, messages as bodies. https://connectrpc.com/docs/protocol */
export function createConnectWire(codec: Codec): UnaryWire {
  const contentType = `application/${codec}`
  return {
    name: 'connect',
    bodyBytesMax: (bytesMax) => bytesMax,
    async decode(operation, { call }, body, bytesMax) {
      const coding = codingOf(call.requestHeader('content-encoding'))
      return decodePayload(operation, codec, await decompress(body, coding, bytesMax))
    },
    async answer(operation, exchange, result) {
      const body = encodeBody(operation, codec, result)
      sendAnswer(exchange, 200, contentType, body instanceof Promise ? await body : body)
    },
    refuse: refuseConnect,
  }
}

/** A text where it can be: Node then sends head and body of HTTP/1.1 in one write. */
function encodeBody(operation: Operation, codec: Codec, result: ResultInit): string | Uint8Array | Promise<Uint8Array> {
  return codec === 'json' ? printJson(encodeJson(operation.output, result)) : encodePayload(operation, codec, result)
}

/** Sends a failure as Connect's error JSON. */
function refuseConnect(exchange: Exchange, failure: Failure): void {
  sendAnswer(exchange, connectStatus(failure), 'application/json', JSON.stringify(connectErrorJson(failure)))
}

/** A failure as Connect writes it: the details in binary, and readable beside that. */
export function connectErrorJson(failure: Failure): Record<string, unknown> {
  return {
    code: connectCode(failure),
    message: failure.publicMessage,
    details: rpcDetails(failure).map((detail) => ({
      type: detail.desc.typeName,
      value: Buffer.from(detailBytes(detail)).toString('base64').replace(/=+$/, ''),
      debug: detailJson(detail),
    })),
  }
}
