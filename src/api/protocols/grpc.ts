import { create, toBinary } from '@bufbuild/protobuf'
import { anyPack } from '@bufbuild/protobuf/wkt'
import { StatusSchema } from '../../../gen/google/rpc/status_pb.ts'
import { ACCEPTED_ENCODINGS, Failure } from '../../base/index.ts'
import type { Exchange } from '../exchange.ts'
import type { Operation, ResultInit } from '../operation.ts'
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

/** Longest `grpc-message`, and limit of the details: some clients accept at most 8 KiB of trailers. */
const MESSAGE_LENGTH_MAX = 512
const DETAILS_BYTES_MAX = 4_096

/** The trailers of a gRPC response. */
type GrpcTrailers = Readonly<Record<string, string>>

/** What differs between the forms of gRPC: where the trailers are, and whether the body is base64. */
export interface GrpcForm {
  readonly name: 'grpc' | 'grpc-web'
  /** The base64 encoding of the body; absent: plain bytes. */
  readonly text?: {
    bytesMax(bytesMax: number): number
    /** @throws Failure MALFORMED_BODY */
    decode(body: Buffer): Buffer
    encode(bytes: Buffer): Buffer
  }
  /** Ends the response; `last` is a frame still to be sent. */
  finish(exchange: Exchange, last: Uint8Array | undefined, trailers: GrpcTrailers): void
}

/** gRPC over HTTP/2: the status is in the trailers. https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md */
export const grpcForm: GrpcForm = {
  name: 'grpc',
  finish({ response }, last, trailers) {
    response.addTrailers(trailers)
    response.end(last)
  },
}

/** gRPC in one of its forms, with messages in one format. */
export function createGrpcProtocol(
  form: GrpcForm,
  format: MessageFormat,
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
    const payload = encodePayload(operation, format, result)
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
      return decodePayload(operation, format, payload)
    },
    async sendResult(operation, exchange, result) {
      const message = await frame(operation, result)
      exchange.context.answerBytes = message.length
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

/** Encodes only what the protocol requires: clients that do not decode the message still show readable text. */
function percentEncode(message: string): string {
  return message.toWellFormed().replace(/[^\x20-\x24\x26-\x7e]+/gu, encodeURIComponent)
}

/** Flag of the last frame of a response, whose payload is the trailers. */
const FLAG_TRAILERS = 0x80

/** gRPC for browsers: the trailers are the last frame. https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md */
export const grpcWebForm: GrpcForm = {
  name: 'grpc-web',
  finish({ response }, last, trailers) {
    const end = trailersFrame(trailers)
    response.end(last === undefined ? end : Buffer.concat([last, end]))
  },
}

/**
 * The same in base64, which the official JavaScript client sends by default: it reads streams with XMLHttpRequest, which has
 * text only. Each frame is encoded on its own, so padding occurs in the middle.
 */
export const grpcWebTextForm: GrpcForm = {
  name: 'grpc-web',
  text: {
    bytesMax: (bytesMax) => Math.ceil(bytesMax / 3) * 4,
    decode: decodeBase64,
    encode: encodeBase64,
  },
  finish({ response }, last, trailers) {
    const end = encodeBase64(trailersFrame(trailers))
    response.end(last === undefined ? end : Buffer.concat([last, end]))
  },
}

function trailersFrame(trailers: GrpcTrailers): Buffer {
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
