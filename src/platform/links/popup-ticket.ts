import type { LinkDependencies, LinkSessionRef } from './dependencies.ts'
import { hashSecret, randomSecret } from './link-token.ts'
import { loadForBrowser } from './load-session.ts'
import { sealValues, unsealValues } from './sealed-values.ts'
import { updateLinkSessionRow } from './sql/link-change.ts'
import { findTicket, type RedeemedTicket, takeTicket } from './sql/link-ticket.ts'

type TicketDependencies = Pick<LinkDependencies, 'database' | 'secrets'>

/** Time to live of a ticket: a popup uses it at once. */
const TICKET_TTL_MS = 60_000

/**
 * Makes a one-time ticket, valid for 60 s, with which a popup continues a session that a frame has begun.
 *
 * @param url the consent page, from `submitForm`
 * @returns `undefined` when there is no such session, or it no longer waits for the consent
 */
export async function createHopTicket(
  deps: TicketDependencies,
  ref: LinkSessionRef,
  url: string,
): Promise<string | undefined> {
  const session = await loadForBrowser(deps, ref)
  if (session === undefined) return undefined
  const { pool } = deps.database
  const ticket = randomSecret()
  const values = { url, browser_key: ref.browserKey }
  const updated = await updateLinkSessionRow(pool, session, ['redirected', 'pending'], {
    ticketHash: hashSecret(ticket),
    ticketTtlMs: TICKET_TTL_MS,
    sealedTicket: await sealValues(deps, pool, session, 'sealed_ticket', values),
  })
  return updated && ticket
}

/** A session in a popup, and where it continues. */
export interface RedeemedHop extends LinkSessionRef {
  /** The consent page. */
  readonly url: string
  /** When the session expires. */
  readonly expiresAt: Date
}

/** What a ticket is exchanged for, once; `undefined` for an unknown, used or expired one. */
export async function redeemHopTicket(deps: TicketDependencies, ticket: string): Promise<RedeemedHop | undefined> {
  const taken = await takeTicket(deps.database.pool, hashSecret(ticket))
  return taken && (await unsealHop(deps, taken))
}

/** What a ticket would be exchanged for, which leaves it valid; `undefined` for an unknown, used or expired one. */
export async function findHop(deps: TicketDependencies, ticket: string): Promise<RedeemedHop | undefined> {
  const found = await findTicket(deps.database.pool, hashSecret(ticket))
  return found && (await unsealHop(deps, found))
}

async function unsealHop(deps: TicketDependencies, ticket: RedeemedTicket): Promise<RedeemedHop> {
  const { url, browser_key } = await unsealValues(
    deps,
    deps.database.pool,
    ticket,
    'sealed_ticket',
    ticket.sealedTicket,
  )
  return { id: ticket.id, browserKey: String(browser_key), url: String(url), expiresAt: ticket.expiresAt }
}
