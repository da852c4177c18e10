import type { Json } from '../../base/index.ts'
import type { TemplateScope } from '../../expression/index.ts'
import type { Format } from '../format.ts'
import type { KeySource } from './key-source.ts'
import type { VerificationResult } from './verdict.ts'

/** One way of proving that an inbound webhook is genuine. */
export interface SignatureFormat extends Format {
  readonly compile: (config: Json | undefined) => Verify
}

/**
 * Judges one delivery. Whatever is missing, empty or not readable refuses.
 *
 * Replays within the tolerance are not noticed here; whoever accepts deliveries remembers them.
 *
 * @throws Failure UPSTREAM_UNREACHABLE, or what the fetch throws, while the sender's public keys cannot be had: the delivery
 * is then neither genuine nor forged, and the sender should try again
 */
export type Verify = (
  delivery: InboundDelivery,
  scope: TemplateScope,
  tools: VerificationContext,
) => Promise<VerificationResult>

/** An inbound webhook as it arrived. */
export interface InboundDelivery {
  /** Upper case. */
  readonly method: string
  /** The address as the sender called it: the public base address, with path and query exactly as received. */
  readonly url: string
  /** Lower-case names; repeated headers joined by a comma. */
  readonly headers: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string>>
  /** The bytes as received. */
  readonly body: Uint8Array
  /** The body parsed, after `payload_transform`. */
  readonly payload: Json
}

export interface VerificationContext {
  readonly now: () => Date
  readonly keys: KeySource
}
