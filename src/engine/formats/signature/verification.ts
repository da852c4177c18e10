import type { Json } from '../../../foundation/json/index.ts'
import type { TemplateScope } from '../../expressions/placeholder.ts'

/**
 * Verifies one request. Anything missing, empty or unreadable makes it invalid.
 *
 * Replays within the timestamp's tolerance are not detected here.
 *
 * @throws Failure UPSTREAM_UNREACHABLE, or errors of the fetch, while the sender's public keys cannot be fetched: the
 * request is then neither valid nor invalid, and the sender should retry
 */
export type Verify = (
  request: WebhookRequest,
  scope: TemplateScope,
  context: VerificationContext,
) => Promise<VerificationResult>

/** An inbound webhook as it was received. */
export interface WebhookRequest {
  /** Upper case. */
  readonly method: string
  /** The URL that the sender called: the public base URL, with path and query exactly as received. */
  readonly url: string
  /** Lower-case names; repeated headers joined by a comma. */
  readonly headers: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string>>
  /** The bytes as received. */
  readonly body: Uint8Array
  /** The parsed body, after `payload_transform`. */
  readonly payload: Json
  /** One entry of the list that `items` names, while its signature is verified. */
  readonly item?: Json
}

export interface VerificationContext {
  readonly now: () => Date
  readonly keys: KeySource
}

/** Result of a verification. */
export type VerificationResult = ValidDelivery | InvalidDelivery

/** An authentic request. */
export interface ValidDelivery {
  readonly kind: 'valid'
}

/** `reason` is a sentence for logs and for the owner of the definition, without values of the request or secrets. */
export interface InvalidDelivery {
  readonly kind: 'invalid'
  readonly reason: string
}

/** Result of one step of a verification: a value, or why the request is invalid. */
export type Result<T> = { readonly kind: 'ok'; readonly value: T } | InvalidDelivery

export const VALID: ValidDelivery = { kind: 'valid' }

export function invalid(reason: string): InvalidDelivery {
  return { kind: 'invalid', reason }
}

export function ok<T>(value: T): Result<T> {
  return { kind: 'ok', value }
}

/**
 * Cache of the public keys of senders by URL: key sets and certificates.
 *
 * `invalid`: the URL has no such document. Throws the errors of the fetch, or Failure UPSTREAM_UNREACHABLE, while the keys
 * cannot be fetched.
 */
export interface KeySource {
  read(url: string): Promise<Result<string>>
  /** For a key that is not in the cached document: a newer document, with at most one fetch a minute. */
  reread(url: string): Promise<Result<string>>
  /** The same documents, with a rate limit of its own: one environment does not use up the fetches of others. */
  ofOwner(owner: string): KeySource
}
