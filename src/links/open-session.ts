import type { LinkDependencies, LinkSessionRef } from './dependencies.ts'
import type { LinkSession, LinkSummary } from './session.ts'

/** A session opened in a browser, or why it is not. */
export type OpenResult =
  | {
      readonly kind: 'opened'
      readonly session: LinkSession
      /** Secret of this browser: 43 characters of base64url. In a cookie of the top window, in the memory of a frame. */
      readonly browserKey: string
    }
  | { readonly kind: 'rejected'; readonly code: 'invalid_token' | 'expired_token' | 'used_token' }

/**
 * Opens a session with its link token. The browser that has opened it may open it again; another one takes it over as long
 * as nothing was submitted, so that a program which looks at links does not use them up.
 *
 * @param browserKey of the browser, where it has one for the session
 */
export async function openLinkSession(
  _deps: LinkDependencies,
  _token: string,
  _browserKey?: string,
): Promise<OpenResult> {
  return await Promise.reject(new Error('not yet'))
}

/** The session of a browser as it is now; `undefined` when there is none with that id for that browser. */
export async function findLinkSession(_deps: LinkDependencies, _ref: LinkSessionRef): Promise<LinkSession | undefined> {
  return await Promise.reject(new Error('not yet'))
}

/** What the page that has the link token may know; `undefined` for an invalid token. */
export async function readLinkSummary(_deps: LinkDependencies, _token: string): Promise<LinkSummaryResult | undefined> {
  return await Promise.reject(new Error('not yet'))
}

/** The summary, and the origins that may read it. */
export interface LinkSummaryResult {
  readonly summary: LinkSummary
  readonly origins: readonly string[]
}
