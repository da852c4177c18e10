import { transitionsOf } from '../../foundation/base/index.ts'
import type { Tx } from '../../foundation/database/index.ts'
import { appendEvents } from '../outbox/append-events.ts'
import type { EventType } from '../outbox/catalog.ts'
import { payloadOf } from '../outbox/payload.ts'
import type { LinkDependencies } from './dependencies.ts'
import { LINK_ERRORS, type LinkError, type LinkErrorCode } from './error-codes.ts'
import { type LinkGuard, type LinkPatch, transitionLinkSession } from './sql/link-change.ts'
import type { LinkSessionKey, LinkSessionRecord } from './sql/link-session.ts'
import { LINK_TRANSITIONS, type LinkCause, type LinkStatus, pageStepOf } from './status.ts'

/** What changes beside the status. */
export interface StatusChangeInput {
  readonly patch?: LinkPatch
  readonly guard?: LinkGuard
  /** Why an attempt failed or the session ended; absent: the session has no error from now on. */
  readonly error?: LinkError
}

/** Causes after which the secrets of the attempt are no longer needed. */
const ENDS_ATTEMPT: ReadonlySet<LinkCause> = new Set<LinkCause>([
  'token_opened',
  'method_chosen',
  'choice_reopened',
  'account_connected',
  'settings_required',
  'account_active',
  'attempt_failed',
  'connection_failed',
  'time_expired',
  'session_cancelled',
])

/** Causes after which a callback of the authorisation so far is no longer accepted. */
const ENDS_AUTHORIZATION: ReadonlySet<LinkCause> = new Set<LinkCause>([
  'token_opened',
  'method_chosen',
  'choice_reopened',
  'form_submitted',
])

/** Secrets that no further step needs. Another token or redirect replaces them. */
const NO_SECRETS = { sealedValues: null, ticketHash: null, sealedTicket: null } as const

/**
 * Makes the transition of a cause, with one row of history and the event that belongs to it. The secrets
 * of an attempt are deleted with the change that ends it.
 *
 * @returns the session after it; `undefined` when there is no transition from its present status, or the guard does not hold
 */
export async function changeLinkStatus(
  tx: Tx,
  key: LinkSessionKey,
  cause: LinkCause,
  { patch = {}, guard = {}, error }: StatusChangeInput = {},
): Promise<LinkSessionRecord | undefined> {
  const session = await transitionLinkSession(tx, key, {
    cause,
    transitions: transitionsOf<LinkStatus, LinkCause>(LINK_TRANSITIONS, cause),
    patch: {
      ...(ENDS_ATTEMPT.has(cause) ? NO_SECRETS : {}),
      ...(ENDS_AUTHORIZATION.has(cause) ? { stateHash: null } : {}),
      ...patch,
    },
    guard,
    error,
  })
  const type = session && eventTypeOf(session, cause)
  if (session !== undefined && type !== undefined)
    await appendEvents(tx, [
      {
        environmentId: session.environmentId,
        type,
        subjectId: session.id,
        integratedAccountId: session.integratedAccountId,
        payload: linkPayload({
          ...session,
          step: pageStepOf(session.status, session.environmentIntegrationId !== null),
          integration: session.integrationName,
        }),
      },
    ])
  return session
}

/** Makes one transition in a transaction of its own; as `changeLinkStatus`. */
export async function commitLinkStatus(
  { database }: Pick<LinkDependencies, 'database'>,
  key: LinkSessionKey,
  cause: LinkCause,
  input: StatusChangeInput = {},
): Promise<LinkSessionRecord | undefined> {
  return await database.transaction((tx) => changeLinkStatus(tx, key, cause, input))
}

/** What an error means for the session: after a repeatable one the customer may try again, any other one ends it. */
export function causeOfError({ code }: LinkError): LinkCause {
  return LINK_ERRORS[code].isRepeatable ? 'attempt_failed' : 'connection_failed'
}

function eventTypeOf({ status }: LinkSessionRecord, cause: LinkCause): EventType | undefined {
  if (status === 'completed') return 'link_token:completed'
  return cause === 'attempt_failed' || cause === 'connection_failed' ? 'link_token:connection_error' : undefined
}

const linkPayload = payloadOf('LinkTokenEventPayload')

/** An error with the advice of its code as message, or a more precise one. */
export function linkError(code: LinkErrorCode, message: string = LINK_ERRORS[code].advice): LinkError {
  return { code, message }
}
