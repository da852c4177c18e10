import type { Json } from '../../base/index.ts'

/** One way of reading an answer. */
export interface ResponseFormat {
  readonly format: string
  readonly summary: string
  /** Sent as `Accept` unless a header says otherwise. */
  readonly accept: string
  /** Reads a body that is not empty. @throws when it is not in this format; the caller decides what that means */
  readonly decode: (body: Uint8Array) => Json
}

/** The body as text. */
export function utf8(body: Uint8Array): string {
  return decoder.decode(body)
}

const decoder = new TextDecoder()
