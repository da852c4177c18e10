import { ACCEPTED_ENCODINGS, codingOf, decompress, Failure, invalidFields, stringifyJson } from '../../base/index.ts'
import { type Exchange, sendResponse } from '../exchange.ts'
import { encodeJson } from '../messages/codec.ts'
import { readQuery } from '../messages/query-string.ts'
import type { Finding, Operation, ResultInit } from '../operation.ts'
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
export function createConnectProtocol(format: MessageFormat): UnaryProtocol {
  const contentType = `application/${format}`
  return {
    name: 'connect',
    bodyBytesMax: (bytesMax) => bytesMax,
    async decode(operation, { context }, body, bytesMax) {
      const coding = codingOf(context.header('content-encoding'))
      return decodePayload(operation, format, await decompress(body, coding, bytesMax))
    },
    async sendResult(operation, exchange, result) {
      const body = encodeBody(operation, format, result)
      sendResponse(exchange, 200, contentType, body instanceof Promise ? await body : body)
    },
    sendError: sendConnectError,
  }
}

/** A string where possible: Node then sends head and body of HTTP/1.1 in one write. */
function encodeBody(
  operation: Operation,
  format: MessageFormat,
  result: ResultInit,
): string | Uint8Array | Promise<Uint8Array> {
  return format === 'json'
    ? stringifyJson(encodeJson(operation.output, result))
    : encodePayload(operation, format, result)
}

/** Sends a failure as Connect's error JSON. */
function sendConnectError(exchange: Exchange, failure: Failure): void {
  sendResponse(exchange, connectStatus(failure), 'application/json', JSON.stringify(connectErrorJson(failure)))
}

/** The error JSON of Connect: each detail in binary, and as JSON for people. */
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
 * Connect GET, for operations without side effects: the message is in the query, so that HTTP caches work.
 *
 * @param query the text after `?`
 */
export function createConnectGetProtocol(query: string): UnaryProtocol {
  const findings: Finding[] = []
  const parameters = new Map(readQuery(query, findings))
  const format: MessageFormat = parameters.get('encoding') === 'proto' ? 'proto' : 'json'
  const protocol = createConnectProtocol(format)
  return {
    ...protocol,
    async decode(operation, _exchange, _body, bytesMax) {
      if (findings.length > 0) throw invalidFields(findings)
      const message = parameters.get('message')
      if (message === undefined || !/^(proto|json)$/.test(parameters.get('encoding') ?? ''))
        throw new Failure('MALFORMED_BODY', 'the query needs "encoding" (json or proto) and "message"')
      const bytes = Buffer.from(message, parameters.get('base64') === '1' ? 'base64url' : 'utf8')
      const coding = codingOf(parameters.get('compression'))
      return decodePayload(operation, format, await decompress(bytes, coding, bytesMax))
    },
  }
}

/** Flag of the last frame of a stream, whose payload is its outcome. */
const FLAG_END = 0x02

/** The Connect protocol for streams: always HTTP 200, the outcome in the last frame. */
export function createConnectStreamProtocol(format: MessageFormat): StreamProtocol {
  const open = ({ response, context }: Exchange) => {
    response.writeHead(200, {
      ...context.responseHeaders,
      'content-type': `application/connect+${format}`,
      'connect-accept-encoding': ACCEPTED_ENCODINGS,
    })
  }
  const frame = async (operation: Operation, result: ResultInit) =>
    encodeFrame(0, await encodePayload(operation, format, result))
  const end = ({ response, context }: Exchange, failure: Failure | undefined) => {
    const outcome = failure === undefined ? {} : { error: connectErrorJson(failure) }
    if (!context.isClientGone) response.end(encodeFrame(FLAG_END, Buffer.from(JSON.stringify(outcome))))
  }
  return {
    name: 'connect',
    bodyBytesMax: (bytesMax) => bytesMax + FRAME_HEADER_BYTES,
    async decode(operation, { context }, body, bytesMax) {
      const payload = await decodeSingleFrame(body, context.header('connect-content-encoding'), bytesMax)
      return decodePayload(operation, format, payload)
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
