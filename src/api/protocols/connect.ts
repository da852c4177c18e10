import { Failure, invalidFields, stringifyJson } from '../../base/index.ts'
import { type Exchange, sendResponse } from '../exchange.ts'
import { encodeJson } from '../messages/codec.ts'
import { readQuery } from '../messages/query-string.ts'
import type { Finding, Operation, ResultInit } from '../operation.ts'
import { ACCEPTED_ENCODINGS, codingOf, decompress } from '../pipeline/compression.ts'
import { connectCode, connectStatus, detailBytes, detailJson, rpcDetails } from '../pipeline/errors.ts'
import type { StreamProtocol, UnaryProtocol } from '../pipeline/protocol.ts'
import {
  decodePayload,
  decodeSingleFrame,
  encodeFrame,
  encodePayload,
  FRAME_HEADER_BYTES,
  type MessageFormat,
} from './framing.ts'

/** The Connect protocol for unary calls: plain HTTP, messages as bodies. https://connectrpc.com/docs/protocol */
export function createConnectProtocol(codec: MessageFormat): UnaryProtocol {
  const contentType = `application/${codec}`
  return {
    name: 'connect',
    bodyBytesMax: (bytesMax) => bytesMax,
    async decode(operation, { context }, body, bytesMax) {
      const coding = codingOf(context.header('content-encoding'))
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
function connectErrorJson(failure: Failure): Record<string, unknown> {
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

/**
 * Connect's form for operations without side effects: the message travels in the query of a GET, so that caches work.
 *
 * @param query the text after `?`
 */
export function createConnectGetProtocol(query: string): UnaryProtocol {
  const findings: Finding[] = []
  const parameters = new Map(readQuery(query, findings))
  const codec: MessageFormat = parameters.get('encoding') === 'proto' ? 'proto' : 'json'
  const wire = createConnectProtocol(codec)
  return {
    ...wire,
    async decode(operation, _exchange, _body, bytesMax) {
      if (findings.length > 0) throw invalidFields(findings)
      const message = parameters.get('message')
      if (message === undefined || !/^(proto|json)$/.test(parameters.get('encoding') ?? ''))
        throw new Failure('MALFORMED_BODY', 'the query needs "encoding" (json or proto) and "message"')
      const bytes = Buffer.from(message, parameters.get('base64') === '1' ? 'base64url' : 'utf8')
      const coding = codingOf(parameters.get('compression'))
      return decodePayload(operation, codec, await decompress(bytes, coding, bytesMax))
    },
  }
}

/** Marks the last envelope of an answer, whose payload says how the stream ended. */
const FLAG_END = 0x02

/** The Connect protocol for streams: always HTTP 200, the outcome in the last envelope. */
export function createConnectStreamProtocol(codec: MessageFormat): StreamProtocol {
  const open = ({ response, context }: Exchange) => {
    response.writeHead(200, {
      ...context.responseHeaders,
      'content-type': `application/connect+${codec}`,
      'connect-accept-encoding': ACCEPTED_ENCODINGS,
    })
  }
  const frame = async (operation: Operation, result: ResultInit) =>
    encodeFrame(0, await encodePayload(operation, codec, result))
  const end = ({ response, context }: Exchange, failure: Failure | undefined) => {
    const outcome = failure === undefined ? {} : { error: connectErrorJson(failure) }
    if (!context.isClientGone) response.end(encodeFrame(FLAG_END, Buffer.from(JSON.stringify(outcome))))
  }
  return {
    name: 'connect',
    bodyBytesMax: (bytesMax) => bytesMax + FRAME_HEADER_BYTES,
    async decode(operation, { context }, body, bytesMax) {
      const payload = await decodeSingleFrame(body, context.header('connect-content-encoding'), bytesMax)
      return decodePayload(operation, codec, payload)
    },
    sendError(exchange, failure) {
      if (exchange.context.isClientGone) return
      open(exchange)
      end(exchange, failure)
    },
    open,
    frame,
    end,
  }
}
