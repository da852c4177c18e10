import type { Json } from '../../base/index.ts'
import type { Scope } from '../../expression/index.ts'
import type { Evaluate, Format } from '../format.ts'

/** One way of putting a credential on an outgoing request. */
export interface AuthorizationFormat extends Format {
  readonly compile: (config: Json | undefined) => Authorise
}

/**
 * Computes what a request needs to be accepted upstream.
 *
 * Unlike other headers and parameters, a placeholder that resolves to nothing is an error here: half a credential is never sent.
 *
 * @throws Failure PLACEHOLDER_UNRESOLVED, EXPRESSION_FAILED
 */
export type Authorise = (
  request: RequestToAuthorise,
  scope: Scope,
  tools: AuthorizationTools,
) => AuthorizationEffect | Promise<AuthorizationEffect>

/** The request as it is about to be sent; signatures are computed over exactly this. */
export interface RequestToAuthorise {
  readonly method: string
  /** With every query parameter but those that authorization adds. */
  readonly url: string
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array | undefined
}

/** What is put on the request. Both parts are credential material: masked in previews, never logged. */
export interface AuthorizationEffect {
  /** Lower-case names; they replace headers of the same name. */
  readonly headers: Readonly<Record<string, string>>
  /** Set last, replacing parameters of the same name. */
  readonly query: Readonly<Record<string, string>>
}

export interface AuthorizationTools {
  readonly evaluate: Evaluate
  readonly now: () => Date
  /** A fresh unpredictable hexadecimal text, for nonces. */
  readonly nonce: () => string
}

/** Sends nothing. */
export const NO_AUTHORIZATION: AuthorizationEffect = { headers: {}, query: {} }
