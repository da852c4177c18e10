import type { LinkDependencies, LinkSessionRef } from './dependencies.ts'

/**
 * Makes a one-time ticket, valid for 60 s, with which a popup continues a session that a frame has begun.
 *
 * @param url the consent page, from `submitForm`
 * @returns `undefined` when there is no such session
 */
export async function createHopTicket(
  _deps: LinkDependencies,
  _ref: LinkSessionRef,
  _url: string,
): Promise<string | undefined> {
  return await Promise.reject(new Error('not yet'))
}

/** What a ticket is exchanged for, once; `undefined` for an unknown, used or expired one. */
export async function redeemHopTicket(
  _deps: LinkDependencies,
  _ticket: string,
): Promise<(LinkSessionRef & { readonly url: string; readonly expiresAt: Date }) | undefined> {
  return await Promise.reject(new Error('not yet'))
}
