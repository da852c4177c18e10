import { printJson } from '../../base/index.ts'
import { encodeBinaryInSlices, holdsLargeJson } from '../message/binary-slices.ts'
import { type Draft, decodeBinary, decodeJson, encodeBinary, encodeJson } from '../message/codec.ts'
import { parseJson } from '../message/json-text.ts'
import type { Operation } from '../operation.ts'
import type { ResultInit } from '../service.ts'

/** How a message is spelt inside a protocol. */
export type Codec = 'proto' | 'json'

/** Reads a request message. */
export function decodePayload(operation: Operation, codec: Codec, payload: Buffer): Draft {
  return codec === 'proto' ? decodeBinary(operation.input, payload) : decodeJson(operation.input, parseJson(payload))
}

/** Writes an answer; a large one in slices, with other work of the event loop in between. */
export function encodePayload(
  operation: Operation,
  codec: Codec,
  result: ResultInit,
): Uint8Array | Promise<Uint8Array> {
  const { output } = operation
  if (codec === 'proto')
    return holdsLargeJson(output, result) ? encodeBinaryInSlices(output, result) : encodeBinary(output, result)
  const text = printJson(encodeJson(output, result))
  return typeof text === 'string' ? Buffer.from(text) : text
}
