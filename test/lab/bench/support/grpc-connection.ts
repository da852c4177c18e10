import http2 from 'node:http2'

const FRAME_PREFIX_BYTES = 5

/** One h2c session that sends unary gRPC calls with ready-made messages and reads status only. */
export class GrpcConnection {
  readonly #session: http2.ClientHttp2Session
  readonly #headers: http2.OutgoingHttpHeaders

  constructor(origin: string, path: string, token: string) {
    this.#session = http2.connect(origin)
    this.#headers = {
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
      authorization: `Bearer ${token}`,
    }
  }

  /** Resolves with the grpc-status once the trailers are in. */
  call(frame: Buffer): Promise<number> {
    return new Promise((resolve, reject) => {
      const stream = this.#session.request(this.#headers)
      let status = -1
      const note = (headers: http2.IncomingHttpHeaders) => {
        if (headers['grpc-status'] !== undefined) status = Number(headers['grpc-status'])
      }
      stream
        .on('response', note)
        .on('trailers', note)
        .on('error', reject)
        .on('close', () => resolve(status))
      stream.resume()
      stream.end(frame)
    })
  }

  close(): void {
    this.#session.destroy()
  }
}

/** A message as one uncompressed gRPC frame. */
export function grpcFrame(message: Uint8Array): Buffer {
  const frame = Buffer.alloc(FRAME_PREFIX_BYTES + message.length)
  frame.writeUInt32BE(message.length, 1)
  frame.set(message, FRAME_PREFIX_BYTES)
  return frame
}
