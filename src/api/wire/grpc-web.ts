import { wrap } from './envelope.ts'
import type { GrpcForm } from './grpc.ts'

/** Marks the last envelope of an answer, whose payload is the trailers. */
const FLAG_TRAILERS = 0x80

/** gRPC for browsers: the trailers are a last envelope. https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md */
export const grpcWebForm: GrpcForm = {
  name: 'grpc_web',
  finish({ response }, last, trailers) {
    const lines = Object.entries(trailers).map(([name, value]) => `${name}: ${value}\r\n`)
    const end = wrap(FLAG_TRAILERS, Buffer.from(lines.join('')))
    response.end(last === undefined ? end : Buffer.concat([last, end]))
  },
}
