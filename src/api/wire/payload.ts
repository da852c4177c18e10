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

/** Writes an answer. */
export function encodePayload(operation: Operation, codec: Codec, result: ResultInit): Uint8Array {
  if (codec === 'proto') return encodeBinary(operation.output, result)
  return Buffer.from(JSON.stringify(encodeJson(operation.output, result)))
}
