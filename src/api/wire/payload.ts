import { printJson } from '../../base/index.ts'
import { encodeBinaryInSlices, holdsLargeJson } from '../message/binary-slices.ts'
import { type Draft, decodeBinary, decodeJson, encodeBinary, encodeJson } from '../message/codec.ts'
import { parseJsonLater } from '../message/json-text.ts'
import type { Operation } from '../operation.ts'
import type { ResultInit } from '../service.ts'

/** How a message is spelt inside a protocol. */
export type Codec = 'proto' | 'json'

/** Reads a request message; a large one is parsed in slices, and decoded in a turn of the event loop of its own. */
export async function decodePayload({ input }: Operation, codec: Codec, payload: Buffer): Promise<Draft> {
  return codec === 'proto' ? decodeBinary(input, payload) : decodeJson(input, await parseJsonLater(payload))
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
