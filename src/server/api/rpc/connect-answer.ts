import { Code, ConnectError } from '@connectrpc/connect'
import type { UniversalServerResponse } from '@connectrpc/connect/protocol'
import { endStreamFromJson, errorFromJsonBytes } from '@connectrpc/connect/protocol-connect'
import { findTrailerError } from '@connectrpc/connect/protocol-grpc'
import { trailerParse } from '@connectrpc/connect/protocol-grpc-web'
import { Failure } from '../../../foundation/base/index.ts'
import { ENVELOPE_BYTES } from './connect-json.ts'
import type { WireFormat } from './wire-format.ts'

/** The rest of an answer, encoded. */
export interface EncodedAnswer {
  readonly status: number
  readonly contentType: string
  readonly bytes: Buffer
  /** Of gRPC. */
  readonly trailers: Readonly<Record<string, string>> | undefined
}

/** What connect answers a call with, read chunk by chunk: one for each message, and one more for the end of some formats. */
export class ConnectAnswer {
  readonly #format: WireFormat
  readonly #response: UniversalServerResponse
  readonly #chunks: AsyncIterator<Uint8Array> | undefined

  constructor(format: WireFormat, response: UniversalServerResponse) {
    this.#format = format
    this.#response = response
    this.#chunks = response.body?.[Symbol.asyncIterator]()
  }

  /** The next message of a stream. @throws Error when connect could not encode it */
  async readMessage(): Promise<Uint8Array> {
    const chunk = await this.#chunks?.next()
    if (chunk === undefined || chunk.done === true || isEnd(chunk.value))
      throw new Error('a message of a stream cannot be encoded')
    return chunk.value
  }

  /** What is left. */
  async readRest(): Promise<EncodedAnswer> {
    return this.#encoded(await this.#readChunks())
  }

  /** The answer of a unary call. @throws ConnectError when connect could not encode it */
  async readWhole(): Promise<EncodedAnswer> {
    const chunks = this.#format.protocol === 'grpc' ? await this.#readOne() : await this.#readChunks()
    const error = this.#errorIn(chunks)
    if (error !== undefined) throw error
    return this.#encoded(chunks)
  }

  /** Why connect rejected the request. */
  async rejection(): Promise<Failure> {
    const error = this.#errorIn(await this.#readChunks())
    return error === undefined ? new Failure('INTERNAL', 'internal error') : failureOf(error)
  }

  /**
   * The only message of a unary call of gRPC, or nothing when connect rejected it; its status is in the trailers either way. The end
   * is not waited for: there connect aborts the signal of its handler, and the error for that takes 6 % of the call.
   */
  async #readOne(): Promise<readonly Uint8Array[]> {
    const chunk = await this.#chunks?.next()
    return chunk === undefined || chunk.done === true ? [] : [chunk.value]
  }

  async #readChunks(): Promise<readonly Uint8Array[]> {
    const chunks: Uint8Array[] = []
    for (;;) {
      const chunk = await this.#chunks?.next()
      if (chunk === undefined || chunk.done === true) return chunks
      chunks.push(chunk.value)
    }
  }

  #encoded(chunks: readonly Uint8Array[]): EncodedAnswer {
    const { status, header, trailer } = this.#response
    return {
      status,
      contentType: header?.get('content-type') ?? this.#format.contentType,
      bytes: Buffer.concat(chunks),
      trailers: trailer && trailersOf(trailer),
    }
  }

  #errorIn(chunks: readonly Uint8Array[]): ConnectError | undefined {
    const { status, trailer } = this.#response
    const last = chunks.at(-1) ?? new Uint8Array()
    if (this.#format.protocol === 'grpc') return trailer && findTrailerError(trailer)
    if (this.#format.protocol === 'grpc-web') return findTrailerError(trailerParse(last.subarray(ENVELOPE_BYTES)))
    if (this.#format.isEnveloped) return endStreamFromJson(last.subarray(ENVELOPE_BYTES)).error
    return status === 200
      ? undefined
      : errorFromJsonBytes(last, undefined, new ConnectError(`HTTP status ${status}`, Code.Internal))
  }
}

/** Flags of the last envelope of gRPC-Web and of a Connect stream. */
const FLAGS_END = 0x82

function isEnd([flags = 0]: Uint8Array): boolean {
  return (flags & FLAGS_END) !== 0
}

/** Longest text of connect that is repeated: it may quote what the client sent. */
const TEXT_LENGTH_MAX = 300

/** The failure for an error with which connect rejects the bytes of a request. */
export function failureOf({ code, rawMessage }: ConnectError): Failure {
  const text = rawMessage.slice(0, TEXT_LENGTH_MAX).toWellFormed()
  if (code === Code.ResourceExhausted) return new Failure('REQUEST_TOO_LARGE', text)
  if (code === Code.Unimplemented) return new Failure('COMPRESSION_UNSUPPORTED', text)
  return new Failure('MALFORMED_BODY', `the message cannot be read: ${text}`)
}

function trailersOf(trailer: Headers): Readonly<Record<string, string>> {
  const trailers = Object.fromEntries(trailer)
  const message = trailers['grpc-message']
  return message === undefined ? trailers : { ...trailers, 'grpc-message': percentEncode(decodeURIComponent(message)) }
}

/** Encodes only what gRPC requires, connect more than that: clients that do not decode the message still show readable text. */
function percentEncode(message: string): string {
  return message.replace(/[^\x20-\x24\x26-\x7e]+/gu, encodeURIComponent)
}
