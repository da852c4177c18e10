import { ACCEPTED_ENCODINGS, codingOf, decompress, Failure, invalidFields } from '../../../foundation/base/index.ts'
import { stringifyJson } from '../../../foundation/json/index.ts'
import { type Exchange, sendResponse } from '../exchange.ts'
import { decodeJsonBody, encodeJson } from '../messages/codec.ts'
import { readQuery } from '../messages/query-string.ts'
import type { Finding } from '../operation.ts'
import { connectCode, connectStatus, detailBytes, detailJson, rpcDetails } from '../pipeline/errors.ts'
import type { StreamProtocol, UnaryProtocol } from '../pipeline/protocol.ts'

const JSON_TYPE = 'application/json'

/** Connect with JSON for unary calls: plain HTTP, messages as bodies. https://connectrpc.com/docs/protocol */
export const connectJson: UnaryProtocol = {
  name: 'connect',
  bodyBytesMax: (bytesMax) => bytesMax,
  async decode({ input }, { context }, body, bytesMax) {
    const coding = codingOf(context.header('content-encoding'))
    return await decodeJsonBody(input, await decompress(body, coding, bytesMax))
  },
  async sendResult({ output }, exchange, result) {
    // A string where possible: Node then sends head and body of HTTP/1.1 in one write.
    const body = stringifyJson(encodeJson(output, result))
    sendResponse(exchange, 200, JSON_TYPE, typeof body === 'string' ? body : await body)
  },
  sendError(exchange, failure) {
    sendResponse(exchange, connectStatus(failure), JSON_TYPE, JSON.stringify(connectErrorJson(failure)))
  },
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
 * Connect GET with JSON, for operations without side effects: the message is in the query, so that HTTP caches work.
 *
 * @param query the text after `?`
 */
export function createConnectJsonGet(query: string): UnaryProtocol {
  return {
    ...connectJson,
    decode: async ({ input }, _exchange, _body, bytesMax) =>
      await decodeJsonBody(input, await messageOfQuery(query, bytesMax)),
  }
}

/**
 * The message in the query of a GET.
 *
 * @throws Failure INVALID_FIELD, MALFORMED_BODY, COMPRESSION_UNSUPPORTED, REQUEST_TOO_LARGE
 */
export function messageOfQuery(query: string, bytesMax: number): Buffer | Promise<Buffer> {
  const findings: Finding[] = []
  const parameters = new Map(readQuery(query, findings))
  if (findings.length > 0) throw invalidFields(findings)
  const message = parameters.get('message')
  if (message === undefined || !/^(proto|json)$/.test(parameters.get('encoding') ?? ''))
    throw new Failure('MALFORMED_BODY', 'the query needs "encoding" (json or proto) and "message"')
  const bytes = Buffer.from(message, parameters.get('base64') === '1' ? 'base64url' : 'utf8')
  return decompress(bytes, codingOf(parameters.get('compression')), bytesMax)
}

/** Flags and length before each message of a stream. */
export const ENVELOPE_BYTES = 5
const FLAG_COMPRESSED = 0x01
/** Of the last envelope of a stream, whose payload is its outcome. */
const FLAG_END = 0x02

/** Connect with JSON for server streams: always HTTP 200, the outcome in the last envelope. */
export const connectJsonStream: StreamProtocol = {
  name: 'connect',
  bodyBytesMax: (bytesMax) => bytesMax + ENVELOPE_BYTES,
  async decode({ input }, { context }, body, bytesMax) {
    return await decodeJsonBody(input, await openEnvelope(body, context.header('connect-content-encoding'), bytesMax))
  },
  sendError(exchange, failure) {
    if (exchange.context.isClientGone) return
    this.open(exchange)
    this.end(exchange, failure)
  },
  open({ response, context }) {
    response.writeHead(200, {
      ...context.responseHeaders,
      'content-type': 'application/connect+json',
      'connect-accept-encoding': ACCEPTED_ENCODINGS,
    })
  },
  async frame({ output }, result) {
    const json = await stringifyJson(encodeJson(output, result))
    return envelope(0, typeof json === 'string' ? Buffer.from(json) : json)
  },
  end({ response, context }: Exchange, failure) {
    const outcome = failure === undefined ? {} : { error: connectErrorJson(failure) }
    if (!context.isClientGone) response.end(envelope(FLAG_END, Buffer.from(JSON.stringify(outcome))))
  },
}

/** A message, or the end of a stream, as a stream carries it. */
export function envelope(flags: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(ENVELOPE_BYTES)
  head[0] = flags
  head.writeUInt32BE(payload.length, 1)
  return Buffer.concat([head, payload])
}

/**
 * The decompressed payload of the only envelope of a request.
 *
 * @param encoding the header with the compression, which is validated also when the message is not compressed
 * @throws Failure REQUEST_CARDINALITY for none or several messages, MALFORMED_BODY, COMPRESSION_UNSUPPORTED,
 *   COMPRESSION_UNDECLARED, REQUEST_TOO_LARGE
 */
export function openEnvelope(body: Buffer, encoding: string | undefined, bytesMax: number): Buffer | Promise<Buffer> {
  const coding = codingOf(encoding)
  const flags = body[0]
  if (flags === undefined) throw new Failure('REQUEST_CARDINALITY', 'the request carries no message')
  if (body.length < ENVELOPE_BYTES || body.length < ENVELOPE_BYTES + body.readUInt32BE(1))
    throw new Failure('MALFORMED_BODY', 'the message is cut off')
  if ((flags & ~FLAG_COMPRESSED) !== 0) throw new Failure('MALFORMED_BODY', 'the message has unknown flags')
  if (body.length > ENVELOPE_BYTES + body.readUInt32BE(1))
    throw new Failure('REQUEST_CARDINALITY', 'the request carries more than one message')
  const payload = body.subarray(ENVELOPE_BYTES)
  if ((flags & FLAG_COMPRESSED) === 0) return payload
  if (coding === undefined)
    throw new Failure('COMPRESSION_UNDECLARED', 'the message is marked as compressed, and no header says how')
  return decompress(payload, coding, bytesMax)
}
