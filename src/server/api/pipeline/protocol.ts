import type { Message } from '@bufbuild/protobuf'
import type { Failure } from '../../../foundation/base/index.ts'
import type { Exchange, Protocol } from '../exchange.ts'
import type { DecodedRequest } from '../messages/codec.ts'
import type { Operation, ResultInit } from '../operation.ts'

/** A protocol that reads requests. */
export interface RequestProtocol extends Protocol {
  /** Longest body that may hold a message of `bytesMax` bytes: framing does not count against the limit. */
  bodyBytesMax(bytesMax: number): number
  /** @throws Failure MALFORMED_BODY, UNSUPPORTED_MEDIA_TYPE, COMPRESSION_UNSUPPORTED, REQUEST_TOO_LARGE (after decompression) */
  decode(
    operation: Operation,
    exchange: Exchange,
    body: Buffer,
    bytesMax: number,
  ): DecodedRequest | Promise<DecodedRequest>
}

/** A protocol that answers with one message. */
export interface UnaryProtocol extends RequestProtocol {
  /** Encodes the message, then sends it: one that cannot be encoded can still be answered with an error. */
  sendResult(operation: Operation, exchange: Exchange, result: ResultInit): Promise<void>
}

/** A protocol that carries streams in both directions. */
export interface BidiProtocol extends StreamProtocol {
  /** The messages of the request, as they come. @throws Failure COMPRESSION_UNSUPPORTED; what comes of the messages, while they are read */
  decodeStream(exchange: Exchange): Promise<AsyncIterable<Message>>
}

/** A protocol that answers with several messages. */
export interface StreamProtocol extends RequestProtocol {
  /** Sends the head of the response. */
  open(exchange: Exchange): void
  /** One message of the stream, encoded and framed. */
  frame(operation: Operation, result: ResultInit): Promise<Uint8Array>
  end(exchange: Exchange, failure: Failure | undefined): void
}
