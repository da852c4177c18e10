import { type Db, queryOne } from '../../../foundation/database/index.ts'
import type { LinkSessionKey } from './link-session.ts'

/** What a ticket is exchanged for, as stored. */
export interface RedeemedTicket extends LinkSessionKey {
  readonly sealedTicket: Uint8Array
  readonly expiresAt: Date
}

/** What a valid ticket would be exchanged for; leaves it. Uses link_session_ticket. */
export async function findTicket(tx: Db, ticketHash: Uint8Array): Promise<RedeemedTicket | undefined> {
  return await queryOne(
    tx,
    `select environment_id, id, sealed_ticket, expires_at
     from link_session where ticket_hash = :ticketHash and ticket_expires_at > now()`,
    { ticketHash },
  )
}

/** Takes a valid ticket from its session: of any number of callers one gets it. Uses link_session_ticket. */
export async function takeTicket(tx: Db, ticketHash: Uint8Array): Promise<RedeemedTicket | undefined> {
  return await queryOne(
    tx,
    `with held as (
       select environment_id, id, sealed_ticket from link_session
       where ticket_hash = :ticketHash and ticket_expires_at > now() for update
     )
     update link_session session set is_popup = true, ticket_hash = null, ticket_expires_at = null, sealed_ticket = null
     from held where session.environment_id = held.environment_id and session.id = held.id
     returning session.environment_id, session.id, held.sealed_ticket,
       session.expires_at`,
    { ticketHash },
  )
}
