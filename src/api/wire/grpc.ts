import { create, toBinary } from '@bufbuild/protobuf'
import { anyPack } from '@bufbuild/protobuf/wkt'
import { StatusSchema } from '../../../gen/google/rpc/status_pb.ts'
import type { Failure } from '../../base/index.ts'
import type { Exchange } from '../exchange.ts'
import { rpcDetails } from '../failure/details.ts'
import { grpcCode } from '../failure/status.ts'
import type { Operation } from '../operation.ts'
import type { ResultInit } from '../service.ts'
import { ACCEPTED_ENCODINGS } from './compression.ts'
import { decodeSingleFrame, encodeFrame, FRAME_HEADER_BYTES } from './envelope.ts'
import { decodePayload, encodePayload, type MessageFormat } from './payload.ts'
import type { StreamProtocol, UnaryProtocol } from './wire.ts'

const OK: GrpcTrailers = { 'grpc-status': '0' }

/** Longest `grpc-message`, and room for what grows in the details: some clients accept no more than 8 KiB of trailers. */
const MESSAGE_LENGTH_MAX = 512
const DETAILS_BYTES_MAX = 4_096

/** The end of a gRPC answer. */
export type GrpcTrailers = Readonly<Record<string, string>>

/** How gRPC's forms differ: where the trailers go, and whether everything travels as text. */
export interface GrpcForm {
  readonly name: 'grpc' | 'grpc_web'
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
  const open = ({ response, call }: Exchange) => {
    response.writeHead(200, {
      ...call.responseHeaders,
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
    if (!exchange.call.isClientGone) form.finish(exchange, last, trailers)
  }
  return {
    name: form.name,
    bodyBytesMax: (bytesMax) => text?.bytesMax(bytesMax + FRAME_HEADER_BYTES) ?? bytesMax + FRAME_HEADER_BYTES,
    async decode(operation, { call }, body, bytesMax) {
      const bytes = text === undefined ? body : text.decode(body)
      const payload = await decodeSingleFrame(bytes, call.requestHeader('grpc-encoding'), bytesMax)
      return decodePayload(operation, codec, payload)
    },
    async sendResult(operation, exchange, result) {
      const message = await frame(operation, result)
      open(exchange)
      finish(exchange, message, OK)
    },
    sendError(exchange, failure) {
      if (exchange.call.isClientGone) return
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
