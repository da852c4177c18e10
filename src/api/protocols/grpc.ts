import { create, toBinary } from '@bufbuild/protobuf'
import { anyPack } from '@bufbuild/protobuf/wkt'
import { StatusSchema } from '../../../gen/google/rpc/status_pb.ts'
import { Failure } from '../../base/index.ts'
import type { Exchange } from '../exchange.ts'
import type { Operation, ResultInit } from '../operation.ts'
import { ACCEPTED_ENCODINGS } from '../pipeline/compression.ts'
import { grpcCode, rpcDetails } from '../pipeline/errors.ts'
import type { StreamProtocol, UnaryProtocol } from '../pipeline/protocol.ts'
import {
  decodePayload,
  decodeSingleFrame,
  encodeFrame,
  encodePayload,
  FRAME_HEADER_BYTES,
  type MessageFormat,
} from './framing.ts'

const OK: GrpcTrailers = { 'grpc-status': '0' }

/** Longest `grpc-message`, and room for what grows in the details: some clients accept no more than 8 KiB of trailers. */
const MESSAGE_LENGTH_MAX = 512
const DETAILS_BYTES_MAX = 4_096

/** The end of a gRPC answer. */
type GrpcTrailers = Readonly<Record<string, string>>

/** How gRPC's forms differ: where the trailers go, and whether everything travels as text. */
export interface GrpcForm {
  readonly name: 'grpc' | 'grpc-web'
  /** How bytes travel when not as they are. */
  readonly text?: {
    bytesMax(bytesMax: number): number
    /** @throws Failure MALFORMED_BODY */
    decode(body: Buffer): Buffer
    encode(bytes: Buffer): Buffer
  }
  /** Ends the answer; `last` is a message still to be sent. */
  finish(exchange: Exchange, last: Uint8Array | undefined, trailers: GrpcTrailers): void
}

/** gRPC over HTTP/2: the status travels in trailers. https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md */
export const grpcForm: GrpcForm = {
  name: 'grpc',
  finish({ response }, last, trailers) {
    response.addTrailers(trailers)
    response.end(last)
  },
}

/** gRPC in one of its forms, with messages in one codec. */
export function createGrpcProtocol(
  form: GrpcForm,
  codec: MessageFormat,
  contentType: string,
): UnaryProtocol & StreamProtocol {
  const open = ({ response, context }: Exchange) => {
    response.writeHead(200, {
      ...context.responseHeaders,
      'content-type': contentType,
      'grpc-accept-encoding': ACCEPTED_ENCODINGS,
    })
  }
  const { text } = form
  const frame = async (operation: Operation, result: ResultInit) => {
    const payload = encodePayload(operation, codec, result)
    const bytes = encodeFrame(0, payload instanceof Promise ? await payload : payload)
    return text === undefined ? bytes : text.encode(bytes)
  }
  const finish = (exchange: Exchange, last: Uint8Array | undefined, trailers: GrpcTrailers) => {
    if (!exchange.context.isClientGone) form.finish(exchange, last, trailers)
  }
  return {
    name: form.name,
    bodyBytesMax: (bytesMax) => text?.bytesMax(bytesMax + FRAME_HEADER_BYTES) ?? bytesMax + FRAME_HEADER_BYTES,
    async decode(operation, { context }, body, bytesMax) {
      const bytes = text === undefined ? body : text.decode(body)
      const payload = await decodeSingleFrame(bytes, context.header('grpc-encoding'), bytesMax)
      return decodePayload(operation, codec, payload)
    },
    async sendResult(operation, exchange, result) {
      const message = await frame(operation, result)
      open(exchange)
      finish(exchange, message, OK)
    },
    sendError(exchange, failure) {
      if (exchange.context.isClientGone) return
      open(exchange)
      finish(exchange, undefined, failureTrailers(failure))
    },
    open,
    frame,
    end(exchange, failure) {
      finish(exchange, undefined, failure === undefined ? OK : failureTrailers(failure))
    },
  }
}

function failureTrailers(failure: Failure): GrpcTrailers {
  const message = failure.publicMessage.slice(0, MESSAGE_LENGTH_MAX)
  const status = create(StatusSchema, {
    code: grpcCode(failure),
    message,
    details: rpcDetails(failure, DETAILS_BYTES_MAX).map((detail) => anyPack(detail.desc, detail.message)),
  })
  return {
    'grpc-status': String(status.code),
    'grpc-message': percentEncode(message),
    'grpc-status-details-bin': Buffer.from(toBinary(StatusSchema, status)).toString('base64').replace(/=+$/, ''),
  }
}

/** Encodes what the protocol demands and no more, so that clients which decode less still show readable text. */
function percentEncode(message: string): string {
  return message.toWellFormed().replace(/[^\x20-\x24\x26-\x7e]+/gu, encodeURIComponent)
}

/** Marks the last envelope of an answer, whose payload is the trailers. */
const FLAG_TRAILERS = 0x80

/** gRPC for browsers: the trailers are a last envelope. https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md */
export const grpcWebForm: GrpcForm = {
  name: 'grpc-web',
  finish({ response }, last, trailers) {
    const end = trailersEnvelope(trailers)
    response.end(last === undefined ? end : Buffer.concat([last, end]))
  },
}

/**
 * The same in base64, which the official JavaScript client sends by default: it reads streams with XMLHttpRequest, which has
 * text only. Each envelope is encoded by itself, so padding occurs in the middle.
 */
export const grpcWebTextForm: GrpcForm = {
  name: 'grpc-web',
  text: {
    bytesMax: (bytesMax) => Math.ceil(bytesMax / 3) * 4,
    decode: decodeBase64,
    encode: encodeBase64,
  },
  finish({ response }, last, trailers) {
    const end = encodeBase64(trailersEnvelope(trailers))
    response.end(last === undefined ? end : Buffer.concat([last, end]))
  },
}

function trailersEnvelope(trailers: GrpcTrailers): Buffer {
  const lines = Object.entries(trailers).map(([name, value]) => `${name}: ${value}\r\n`)
  return encodeFrame(FLAG_TRAILERS, Buffer.from(lines.join('')))
}

function encodeBase64(bytes: Buffer): Buffer {
  return Buffer.from(bytes.toString('base64'), 'latin1')
}

function decodeBase64(body: Buffer): Buffer {
  const text = body.toString('latin1')
  if (text.length % 4 !== 0 || /[^A-Za-z0-9+/=]/.test(text))
    throw new Failure('MALFORMED_BODY', 'the body is not base64, which this content type asks for')
  return Buffer.concat((text.match(/[^=]+=*/g) ?? []).map((piece) => Buffer.from(piece, 'base64')))
}
