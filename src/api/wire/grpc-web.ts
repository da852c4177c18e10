import { Failure } from '../../base/index.ts'
import { encodeFrame } from './envelope.ts'
import type { GrpcForm, GrpcTrailers } from './grpc.ts'

/** Marks the last envelope of an answer, whose payload is the trailers. */
const FLAG_TRAILERS = 0x80

/** gRPC for browsers: the trailers are a last envelope. https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md */
export const grpcWebForm: GrpcForm = {
  name: 'grpc_web',
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
  name: 'grpc_web',
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
