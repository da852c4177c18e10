import { type Failure, stringifyJson } from '../../base/index.ts'
import { type Exchange, sendResponse } from '../exchange.ts'
import { detailBytes, detailJson, rpcDetails } from '../failure/details.ts'
import { connectCode, connectStatus } from '../failure/status.ts'
import { encodeJson } from '../message/codec.ts'
import type { Operation } from '../operation.ts'
import type { ResultInit } from '../service.ts'
import { codingOf, decompress } from './compression.ts'
import { decodePayload, encodePayload, type MessageFormat } from './payload.ts'
import type { UnaryProtocol } from './wire.ts'

/** The Connect protocol for unary calls: plain HTTP, messages as bodies. https://connectrpc.com/docs/protocol */
export function createConnectProtocol(codec: MessageFormat): UnaryProtocol {
  const contentType = `application/${codec}`
  return {
    name: 'connect',
    bodyBytesMax: (bytesMax) => bytesMax,
    async decode(operation, { call }, body, bytesMax) {
      const coding = codingOf(call.requestHeader('content-encoding'))
      return decodePayload(operation, codec, await decompress(body, coding, bytesMax))
    },
    async sendResult(operation, exchange, result) {
      const body = encodeBody(operation, codec, result)
      sendResponse(exchange, 200, contentType, body instanceof Promise ? await body : body)
    },
    sendError: sendConnectError,
  }
}

/** A text where it can be: Node then sends head and body of HTTP/1.1 in one write. */
function encodeBody(
  operation: Operation,
  codec: MessageFormat,
  result: ResultInit,
): string | Uint8Array | Promise<Uint8Array> {
  return codec === 'json'
    ? stringifyJson(encodeJson(operation.output, result))
    : encodePayload(operation, codec, result)
}

/** Sends a failure as Connect's error JSON. */
function sendConnectError(exchange: Exchange, failure: Failure): void {
  sendResponse(exchange, connectStatus(failure), 'application/json', JSON.stringify(connectErrorJson(failure)))
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
