import { stringifyJson } from '../../base/index.ts'
import { encodeBinaryInSlices, holdsLargeJson } from '../message/binary-slices.ts'
import { type DecodedRequest, decodeBinary, decodeJson, encodeBinary, encodeJson } from '../message/codec.ts'
import { parseRequestJsonInSlices } from '../message/json-text.ts'
import type { Operation } from '../operation.ts'
import type { ResultInit } from '../service.ts'

/** How a message is spelt inside a protocol. */
export type MessageFormat = 'proto' | 'json'

/** Reads a request message; a large one is parsed in slices, and decoded in a turn of the event loop of its own. */
export async function decodePayload(
  { input }: Operation,
  codec: MessageFormat,
  payload: Buffer,
): Promise<DecodedRequest> {
  return codec === 'proto' ? decodeBinary(input, payload) : decodeJson(input, await parseRequestJsonInSlices(payload))
}

/** Writes an answer; a large one in slices, with other work of the event loop in between. */
export function encodePayload(
  operation: Operation,
  codec: MessageFormat,
  result: ResultInit,
): Uint8Array | Promise<Uint8Array> {
  const { output } = operation
  if (codec === 'proto')
    return holdsLargeJson(output, result) ? encodeBinaryInSlices(output, result) : encodeBinary(output, result)
  const text = stringifyJson(encodeJson(output, result))
  return typeof text === 'string' ? Buffer.from(text) : text
}
