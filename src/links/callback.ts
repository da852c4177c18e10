import type { LinkDependencies } from './dependencies.ts'
import type { LinkErrorCode } from './error-codes.ts'

/** What became of a callback; the page shows the session's step in all cases of `session`. */
export type CallbackResult =
  /** @property isPopup it came back in a popup, which may close itself */
  | { readonly kind: 'session'; readonly id: string; readonly isPopup: boolean }
  /** A POST from another site carries no cookie: answer with a page that posts the same fields again. */
  | { readonly kind: 'needs_repost' }
  /** No authorisation has this state, or another browser has begun it. */
  | { readonly kind: 'rejected'; readonly code: Extract<LinkErrorCode, 'state_mismatch'> }

/** A request to the callback address. */
export interface CallbackInput {
  /** Of the query, or of the form of a POST. */
  readonly params: Readonly<Record<string, string>>
  /** The browser's key for a session, from its cookie; absent where it sent none. */
  readonly browserKeyOf: (sessionId: string) => string | undefined
  /** Whether the request is a POST that was not posted again by a page of this service. */
  readonly canRepost: boolean
}

/**
 * Handles the browser's return from the third party. Of any number of requests with one state exactly one exchanges the code;
 * the others show the session.
 */
export async function handleCallback(_deps: LinkDependencies, _input: CallbackInput): Promise<CallbackResult> {
  return await Promise.reject(new Error('not yet'))
}
