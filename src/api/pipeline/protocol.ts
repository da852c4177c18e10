import type { Failure } from '../../base/index.ts'
import type { Exchange } from '../exchange.ts'
import type { DecodedRequest } from '../messages/codec.ts'
import type { Operation, ResultInit } from '../operation.ts'

/**
 * How one protocol spells a request and its answer. Everything between the two is the pipeline's, the same for all.
 *
 * Whatever encodes does so before it sends, so that a message which cannot be encoded still becomes a refusal.
 */
export interface Protocol {
  readonly name: 'grpc' | 'grpc_web' | 'connect' | 'rest'
  /** Longest body that may hold a message of `bytesMax` bytes: what the protocol adds does not count against the limit. */
  bodyBytesMax(bytesMax: number): number
  /** @throws Failure MALFORMED_BODY, UNSUPPORTED_MEDIA_TYPE, COMPRESSION_UNSUPPORTED, REQUEST_TOO_LARGE (after decompression) */
  decode(
    operation: Operation,
    exchange: Exchange,
    body: Buffer,
    bytesMax: number,
  ): DecodedRequest | Promise<DecodedRequest>
  /** Sends a failure in place of an answer. Nothing was sent before. */
  sendError(exchange: Exchange, failure: Failure): void
}

/** A protocol that answers with one message. */
export interface UnaryProtocol extends Protocol {
  sendResult(operation: Operation, exchange: Exchange, result: ResultInit): Promise<void>
}

/** A protocol that answers with several. */
export interface StreamProtocol extends Protocol {
  /** Sends the head of the answer. */
  open(exchange: Exchange): void
  /** One message as it goes between head and end. */
  frame(operation: Operation, result: ResultInit): Promise<Uint8Array>
  /** Ends an opened answer, well or with a failure. */
  end(exchange: Exchange, failure: Failure | undefined): void
}
