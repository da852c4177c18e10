import { codingOf, decompress, Failure, stringifyJson } from '../../base/index.ts'
import { encodeBinaryInSlices, holdsLargeJson } from '../messages/binary.ts'
import { type DecodedRequest, decodeBinary, decodeJson, encodeBinary, encodeJson } from '../messages/codec.ts'
import { parseRequestJsonInSlices } from '../messages/json-text.ts'
import type { Operation, ResultInit } from '../operation.ts'

/** Size of the frame header, flags and length, before each message of gRPC, gRPC-Web and Connect streams. */
export const FRAME_HEADER_BYTES = 5

/** Flag of a message that is compressed with the encoding in the headers. */
const FLAG_COMPRESSED = 0x01

/** A frame: flags, length and payload. */
export function encodeFrame(flags: number, payload: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(FRAME_HEADER_BYTES + payload.length)
  frame[0] = flags
  frame.writeUInt32BE(payload.length, 1)
  frame.set(payload, FRAME_HEADER_BYTES)
  return frame
}

/**
 * The decompressed payload of the only frame of a unary or server-streaming request.
 *
 * @param encoding the header with the compression, which is validated also when the message is not compressed
 * @throws Failure REQUEST_CARDINALITY for none or several messages, MALFORMED_BODY for a broken one, and as `codingOf` and
 *   `decompress` do; COMPRESSION_UNDECLARED for a compressed message without a compression (gRPC, compression.md)
 */
export function decodeSingleFrame(
  body: Buffer,
  encoding: string | undefined,
  bytesMax: number,
): Buffer | Promise<Buffer> {
  const coding = codingOf(encoding)
  const flags = body[0]
  if (flags === undefined) throw new Failure('REQUEST_CARDINALITY', 'the request carries no message')
  if (body.length < FRAME_HEADER_BYTES) throw malformed('the message is cut off')
  if ((flags & ~FLAG_COMPRESSED) !== 0) throw malformed('the message has unknown flags')
  const length = body.readUInt32BE(1)
  if (body.length < FRAME_HEADER_BYTES + length) throw malformed('the message is cut off')
  if (body.length > FRAME_HEADER_BYTES + length)
    throw new Failure('REQUEST_CARDINALITY', 'the request carries more than one message')
  const payload = body.subarray(FRAME_HEADER_BYTES)
  if ((flags & FLAG_COMPRESSED) === 0) return payload
  if (coding === undefined)
    throw new Failure('COMPRESSION_UNDECLARED', 'the message is marked as compressed, and no header says how')
  return decompress(payload, coding, bytesMax)
}

function malformed(message: string): Failure {
  return new Failure('MALFORMED_BODY', message)
}

/** The format of messages inside a protocol. */
export type MessageFormat = 'proto' | 'json'

/** Decodes a request message; a large JSON text is parsed in slices, between which other requests run. */
export async function decodePayload(
  { input }: Operation,
  format: MessageFormat,
  payload: Buffer,
): Promise<DecodedRequest> {
  return format === 'proto' ? decodeBinary(input, payload) : decodeJson(input, await parseRequestJsonInSlices(payload))
}

/** Encodes an answer; a large one in slices, between which other requests run. */
export function encodePayload(
  operation: Operation,
  format: MessageFormat,
  result: ResultInit,
): Uint8Array | Promise<Uint8Array> {
  const { output } = operation
  if (format === 'proto')
    return holdsLargeJson(output, result) ? encodeBinaryInSlices(output, result) : encodeBinary(output, result)
  const text = stringifyJson(encodeJson(output, result))
  return typeof text === 'string' ? Buffer.from(text) : text
}
