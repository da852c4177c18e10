import type { Json } from '../../base/index.ts'
import type { TemplateScope } from '../../expressions/index.ts'
import type { Format } from '../format.ts'
import type { KeySource } from './key-source.ts'

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

/** What a verification came to. */
export type VerificationResult = { readonly kind: 'genuine' } | InvalidDelivery

/** `why` is one sentence for logs and for the owner of the definition; it never holds a value of the delivery or a secret. */
export interface InvalidDelivery {
  readonly kind: 'refused'
  readonly why: string
}

/** A step on the way to a verdict: its result, or the refusal that ends the way. */
export type Result<T> = { readonly kind: 'found'; readonly value: T } | InvalidDelivery

export const VALID: VerificationResult = { kind: 'genuine' }

export function invalid(why: string): InvalidDelivery {
  return { kind: 'refused', why }
}

export function ok<T>(value: T): Result<T> {
  return { kind: 'found', value }
}
