import { z } from 'zod'
import type { Json } from '../../../foundation/json/index.ts'
import type { TemplateScope } from '../../expressions/placeholder.ts'
import type { EvaluateExpression, Format } from '../format.ts'

/** One way of authorizing an outgoing request. */
export interface AuthorizationFormat extends Format {
  readonly compile: (config: Json | undefined) => Authorize
}

/**
 * Computes the credential headers and parameters of a request.
 *
 * Unlike elsewhere, a placeholder without a value is an error here: half a credential is never sent.
 *
 * @throws Failure PLACEHOLDER_UNRESOLVED, EXPRESSION_FAILED
 */
export interface Authorize {
  (
    request: UnauthorizedRequest,
    scope: TemplateScope,
    context: AuthorizationContext,
  ): AuthorizationEffect | Promise<AuthorizationEffect>
  /** Whether it answers the challenge of a 401, by its `WWW-Authenticate`: then the request is sent once more. */
  readonly answersChallenge?: (header: string) => boolean
}

/** A challenge that requests answer. */
export interface Challenge {
  /** `WWW-Authenticate` of the response. */
  readonly header: string
  /** How many requests have answered it, this one included. */
  readonly count: number
}

/** The request as it is about to be sent; signatures are computed over exactly this. */
export interface UnauthorizedRequest {
  readonly method: string
  /** With every query parameter but those that authorization adds. */
  readonly url: string
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array | undefined
}

/** Headers and parameters that authorize a request: credential material, masked in dry runs, never logged. */
export interface AuthorizationEffect {
  /** Lower-case names; they replace headers of the same name. */
  readonly headers: Readonly<Record<string, string>>
  /** Added last; they replace parameters of the same name. */
  readonly query: Readonly<Record<string, string>>
}

export interface AuthorizationContext {
  readonly evaluate: EvaluateExpression
  readonly now: () => Date
  /** A random hexadecimal text, for nonces. */
  readonly nonce: () => string
  /** The last challenge of the third party in this call. */
  readonly challenge?: Challenge | undefined
}

/** Sends nothing. */
export const NO_AUTHORIZATION: AuthorizationEffect = { headers: {}, query: {} }

/** `none`: states explicitly that the API needs no credential. */
export const none: AuthorizationFormat = {
  format: 'none',
  summary: 'Sends no credential. The same as `authorization: null` on a method.',
  config: z.strictObject({}).optional(),
  compile: () => () => NO_AUTHORIZATION,
}
