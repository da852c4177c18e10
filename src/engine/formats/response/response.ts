import type { z } from 'zod'
import { type Json, parseJson } from '../../../foundation/json/index.ts'
import { decodeJsonText, decodeText } from './charset.ts'

/** One way of decoding a response. */
export interface ResponseFormat {
  readonly format: string
  readonly summary: string
  /** Sent as `Accept` unless a header sets another. */
  readonly accept: string
  /** Decoding costs no more than a copy of the body: no thread is needed. */
  readonly decodesInline?: true
  /** Schema of `config`. Absent: there is nothing to set. */
  readonly config?: z.ZodType
  /** The format with settings of that schema. */
  readonly configure?: (settings: Json) => ResponseFormat
  /** What was set. */
  readonly settings?: Json
  /**
   * Decodes a body that is not empty.
   *
   * @param charset of the content type
   * @throws CharsetError, JsonTextError, BodyFormatError, or another Error when it is not in this format
   */
  readonly decode: (body: Uint8Array, charset?: string) => Json
}

/**
 * A body breaks a rule or limit of its format, as that of another attempt would. The message begins with a verb and quotes nothing of
 * the body.
 */
export class BodyFormatError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'BodyFormatError'
  }
}

/** Lossy UTF-8 decoding, for messages and for recognising a body. */
export function decodeUtf8(body: Uint8Array): string {
  return decoder.decode(body)
}

const decoder = new TextDecoder()

/** `json`: the default. A byte order mark is tolerated. Numbers keep their text, see `JsonNumber`. */
export const json: ResponseFormat = {
  format: 'json',
  summary: 'JSON, up to 256 levels deep; every number is kept as it is written.',
  accept: 'application/json',
  decode: (body, charset) => parseJson(decodeJsonText(body, charset)),
}

/** `ndjson`: one JSON value per line, read as a list; blank lines are skipped. */
export const ndjson: ResponseFormat = {
  format: 'ndjson',
  summary: 'One JSON value per line, read as a list.',
  accept: 'application/x-ndjson',
  decode: (body, charset) => {
    const lines = decodeJsonText(body, charset).split('\n')
    return lines.filter((line) => line.trim() !== '').map((line) => parseJson(line))
  },
}

/** `text`: the body as one string. */
export const text: ResponseFormat = {
  format: 'text',
  summary: 'The body as one text, in the charset of the content type, UTF-8 where it names none.',
  accept: '*/*',
  decodesInline: true,
  decode: decodeText,
}

/** `binary`: base64 within JSON. */
export const binary: ResponseFormat = {
  format: 'binary',
  summary: 'Bytes; where the answer is JSON they are base64.',
  accept: '*/*',
  decodesInline: true,
  decode: (body) => Buffer.from(body).toString('base64'),
}
