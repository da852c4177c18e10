import type { Json } from '../../base/index.ts'

/** One way of reading an answer. */
export interface ResponseFormat {
  readonly format: string
  readonly summary: string
  /** Sent as `Accept` unless a header says otherwise. */
  readonly accept: string
  /** Reading costs no more than copying the body. */
  readonly isCheap?: true
  /**
   * Reads a body that is not empty.
   *
   * @param charset the one that the content type names
   * @throws CharsetError, JsonTextError, or another Error when it is not in this format; the caller decides what that means
   */
  readonly decode: (body: Uint8Array, charset?: string) => Json
}

/** Bytes as text where a wrong character does no harm: for people to read, or to recognise a body. */
export function decodeUtf8(body: Uint8Array): string {
  return decoder.decode(body)
}

const decoder = new TextDecoder()
