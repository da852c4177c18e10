import { Failure } from '../../base/index.ts'

/** Flags and length before each message of gRPC, gRPC-Web and Connect streams. */
export const ENVELOPE_BYTES = 5

/** The message is compressed with the encoding its headers name. */
const FLAG_COMPRESSED = 0x01

/** One message as it came. */
export interface Envelope {
  readonly isCompressed: boolean
  readonly payload: Buffer
}

/** Puts flags and length before a payload. */
export function wrap(flags: number, payload: Uint8Array): Buffer {
  const envelope = Buffer.allocUnsafe(ENVELOPE_BYTES + payload.length)
  envelope[0] = flags
  envelope.writeUInt32BE(payload.length, 1)
  envelope.set(payload, ENVELOPE_BYTES)
  return envelope
}

/**
 * Opens the one envelope of a unary or server-streaming request.
 *
 * @throws Failure MALFORMED_BODY when there is none, more than one, or a broken one
 */
export function unwrapOnly(body: Buffer): Envelope {
  const flags = body[0]
  if (flags === undefined) throw malformed('the request carries no message')
  if (body.length < ENVELOPE_BYTES) throw malformed('the message is cut off')
  if ((flags & ~FLAG_COMPRESSED) !== 0) throw malformed('the message has unknown flags')
  const length = body.readUInt32BE(1)
  if (body.length < ENVELOPE_BYTES + length) throw malformed('the message is cut off')
  if (body.length > ENVELOPE_BYTES + length) throw malformed('the request carries more than one message')
  return { isCompressed: (flags & FLAG_COMPRESSED) !== 0, payload: body.subarray(ENVELOPE_BYTES) }
}

function malformed(message: string): Failure {
  return new Failure('MALFORMED_BODY', message)
}
