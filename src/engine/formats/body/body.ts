import { Failure } from '../../../foundation/base/index.ts'
import { isJsonObject, type Json } from '../../../foundation/json/index.ts'
import { writeQuery } from '../query-string.ts'

/** One way of encoding a request body. */
export interface BodyFormat {
  readonly format: string
  readonly summary: string
  /** @throws Failure INVALID_FIELD when the value cannot be encoded in this format */
  readonly encode: (value: Json, context: EncodeContext) => EncodedBody
}

/** An encoded body. `contentType` applies unless a header sets another. */
interface EncodedBody {
  readonly content: string | Uint8Array
  readonly contentType: string
}

interface EncodeContext {
  /** A random hexadecimal text, for multipart boundaries. */
  readonly nonce: () => string
}

/** `json`: the default. */
export const json: BodyFormat = {
  format: 'json',
  summary: 'JSON (`application/json`).',
  encode: (value) => ({ content: JSON.stringify(value), contentType: 'application/json' }),
}

/** `form`: `application/x-www-form-urlencoded`, nested objects in brackets, lists with `[]`. */
export const form: BodyFormat = {
  format: 'form',
  summary: 'A URL-encoded form (`application/x-www-form-urlencoded`).',
  encode: (value) => {
    if (!isJsonObject(value)) throw new Failure('INVALID_FIELD', 'a form body must be an object of fields')
    return { content: writeQuery(value, 'brackets'), contentType: 'application/x-www-form-urlencoded' }
  },
}

/** `raw`: a text as it is. */
export const raw: BodyFormat = {
  format: 'raw',
  summary: 'The text as it is; name its type in a `Content-Type` header. Other values are written as JSON.',
  encode: (value) => ({
    content: typeof value === 'string' ? value : JSON.stringify(value),
    contentType: typeof value === 'string' ? 'text/plain; charset=utf-8' : 'application/json',
  }),
}
