import type { Json, JsonObject } from '../../../../../src/foundation/json/index.ts'

/** One promise of a signature format: a delivery with this config is valid, or rejected for this reason. */
export interface SignatureRow {
  readonly promise: string
  readonly config?: Json
  readonly method?: string
  readonly url?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** Default: the body parsed as JSON, `null` when it is none. */
  readonly payload?: Json
  /** Variables of the environment: secrets and keys. */
  readonly env?: JsonObject
  /** Default: 2026-01-01T00:00:00Z. */
  readonly now?: string
  /** What addresses of public keys answer; an address without a document is not found. */
  readonly documents?: Readonly<Record<string, string>>
  /** Part of the reason; absent: the delivery is valid. */
  readonly reason?: string
  /** What the scheme proves beside the headers, so that changing it has to reject. Default: the body. */
  readonly proves?: readonly ('method' | 'url' | 'query' | 'body' | 'payload')[]
  /** Seconds that `now` may be away from the time of sending, in both directions; `now` is then the time of sending. */
  readonly window?: number
  /** A header holds more than the scheme needs, so that changing it need not reject. */
  readonly hasSpare?: boolean
}

export const NOW = '2026-01-01T00:00:00Z'
/** `NOW` as senders write it. */
export const SECONDS = String(Date.parse(NOW) / 1000)
export const MILLISECONDS = String(Date.parse(NOW))
