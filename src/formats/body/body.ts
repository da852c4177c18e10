import type { Json } from '../../base/index.ts'

/** One way of writing a request body. */
export interface BodyFormat {
  readonly format: string
  readonly summary: string
  /** @throws Failure INVALID_FIELD when the value cannot be written in this format */
  readonly encode: (value: Json, tools: EncodeContext) => EncodedBody
}

/** A body as it is sent. `contentType` applies unless a header says otherwise. */
interface EncodedBody {
  readonly content: string | Uint8Array
  readonly contentType: string
}

interface EncodeContext {
  /** A fresh unpredictable hexadecimal text, for multipart boundaries. */
  readonly nonce: () => string
}
