import type { AuthenticationMethod } from '../../../engine/formats/index.ts'
import { type Db, jsonb, query, queryOne } from '../../../foundation/database/index.ts'
import type { JsonObject } from '../../../foundation/json/index.ts'
import type { LinkError } from '../error-codes.ts'
import type { LinkTransition } from '../session.ts'
import type { LinkCause, LinkStatus } from '../status.ts'
import {
  INTEGRATION_JOIN,
  IS_EXCHANGE_LOST,
  IS_OVERDUE,
  type LinkSessionKey,
  type LinkSessionRecord,
  SESSION_COLUMNS,
} from './link-session.ts'

/** Columns to change; an absent one keeps its value. */
export interface LinkPatch {
  readonly integratedAccountId?: string
  readonly environmentIntegrationId?: string | null
  readonly authenticationMethod?: AuthenticationMethod | null
  readonly credential?: string | null
  readonly formValues?: JsonObject
  /** Address of the terms of service that the customer accepts now. */
  readonly acceptedTerms?: string | undefined
  /** To be added. */
  readonly attempts?: number
  readonly browserKeyHash?: Uint8Array
  readonly stateHash?: Uint8Array | null
  /** Time to live of the state, from now. */
  readonly stateTtlMs?: number
  readonly callbackUri?: string
  readonly exchangeId?: string | null
  readonly grantedScopes?: readonly string[]
  readonly missingScopes?: readonly string[]
  readonly sealedValues?: Uint8Array | null
  readonly ticketHash?: Uint8Array | null
  readonly ticketTtlMs?: number
  readonly sealedTicket?: Uint8Array | null
  readonly isPopup?: boolean
}

/** What must hold for a change, beside the status; an absent one need not. */
export interface LinkGuard {
  readonly exchangeId?: string
  readonly stateHash?: Uint8Array
  /** Nothing has changed the session since this version of it was read. */
  readonly version?: number
  /** Nothing was submitted. */
  readonly isUntouched?: true
  /** Its time is over. */
  readonly isOverdue?: true
  readonly isExchangeLost?: true
}

/** How each key of a patch is written. */
const ASSIGNMENTS: Readonly<Record<keyof LinkPatch, string>> = {
  integratedAccountId: 'integrated_account_id = :integratedAccountId::uuid',
  environmentIntegrationId: 'environment_integration_id = :environmentIntegrationId::uuid',
  authenticationMethod: 'authentication_method = :authenticationMethod::text',
  credential: 'credential = :credential::text',
  formValues: 'form_values = :formValues::jsonb',
  acceptedTerms: 'terms_url = :acceptedTerms::text, terms_accepted_at = now()',
  attempts: 'attempts = attempts + :attempts::integer',
  browserKeyHash: 'browser_key_hash = :browserKeyHash::bytea',
  stateHash: 'state_hash = :stateHash::bytea',
  stateTtlMs: "state_expires_at = now() + :stateTtlMs * interval '1 millisecond'",
  callbackUri: 'callback_uri = :callbackUri::text',
  exchangeId: 'exchange_id = :exchangeId::uuid',
  grantedScopes: 'granted_scopes = :grantedScopes::text[]',
  missingScopes: 'missing_scopes = :missingScopes::text[]',
  sealedValues: 'sealed_values = :sealedValues::bytea',
  ticketHash: 'ticket_hash = :ticketHash::bytea',
  ticketTtlMs: "ticket_expires_at = now() + :ticketTtlMs * interval '1 millisecond'",
  sealedTicket: 'sealed_ticket = :sealedTicket::bytea',
  isPopup: 'is_popup = :isPopup::boolean',
}

const GUARDS: Readonly<Record<keyof LinkGuard, string>> = {
  exchangeId: 'session.exchange_id = :guardExchangeId::uuid',
  stateHash: 'session.state_hash = :guardStateHash::bytea',
  version: 'session.version = :guardVersion::integer',
  isUntouched: 'session.attempts = 0',
  isOverdue: IS_OVERDUE,
  isExchangeLost: IS_EXCHANGE_LOST,
}

/** A transition of a session. */
export interface LinkTransitionInput {
  readonly cause: LinkCause
  /** The status that each present one leads to. */
  readonly transitions: readonly { readonly from: LinkStatus; readonly to: LinkStatus }[]
  readonly patch: LinkPatch
  readonly guard: LinkGuard
  /** Absent: the session has no error from now on. */
  readonly error: LinkError | undefined
}

/**
 * Makes a transition and writes it to the history, in one statement: of two concurrent callers one makes it, and the other finds
 * another status. Uses primary keys.
 *
 * @returns the session after it; `undefined` when its status, or the guard, does not allow it
 */
export async function transitionLinkSession(
  tx: Db,
  { environmentId, id }: LinkSessionKey,
  { cause, transitions, patch, guard, error }: LinkTransitionInput,
): Promise<LinkSessionRecord | undefined> {
  return await queryOne(
    tx,
    `with changed as (
       update link_session session set ${assignmentsOf(patch)} status = transition.to_status, status_at = now(),
         error_code = :errorCode, error_message = :errorMessage, updated_at = now(), version = session.version + 1
       from unnest(:from::text[], :to::text[]) as transition (from_status, to_status)
       where session.environment_id = :environmentId and session.id = :id
         and session.status = transition.from_status ${conditionsOf(guard)}
       returning session.*, transition.from_status
     ), written as (
       insert into link_session_transition
         (environment_id, link_session_id, version, from_status, to_status, cause, error_code, message)
       select environment_id, id, version, from_status, status, :cause, :errorCode, :errorMessage from changed
     )
     select ${SESSION_COLUMNS} from changed session ${INTEGRATION_JOIN}`,
    {
      environmentId,
      id,
      cause,
      from: transitions.map(({ from }) => from),
      to: transitions.map(({ to }) => to),
      errorCode: error?.code ?? null,
      errorMessage: error?.message ?? '',
      ...parametersOf(patch, guard),
    },
  )
}

/** Changes a session that keeps its status, if that is one of the given and the guard holds. Uses the primary key. */
export async function updateLinkSessionRow(
  tx: Db,
  { environmentId, id }: LinkSessionKey,
  statuses: readonly LinkStatus[],
  patch: LinkPatch,
  guard: LinkGuard = {},
): Promise<LinkSessionRecord | undefined> {
  return await queryOne(
    tx,
    `with changed as (
       update link_session session set ${assignmentsOf(patch)} updated_at = now(), version = session.version + 1
       where session.environment_id = :environmentId and session.id = :id and session.status = any(:statuses)
         ${conditionsOf(guard)}
       returning session.*
     )
     select ${SESSION_COLUMNS} from changed session ${INTEGRATION_JOIN}`,
    { environmentId, id, statuses, ...parametersOf(patch, guard) },
  )
}

function assignmentsOf(patch: LinkPatch): string {
  return Object.entries(ASSIGNMENTS)
    .filter(([key]) => patch[key as keyof LinkPatch] !== undefined)
    .map(([, assignment]) => `${assignment},`)
    .join(' ')
}

function conditionsOf(guard: LinkGuard): string {
  return Object.entries(GUARDS)
    .filter(([key]) => guard[key as keyof LinkGuard] !== undefined)
    .map(([, condition]) => `and ${condition}`)
    .join(' ')
}

function parametersOf(
  { formValues, acceptedTerms, ...patch }: LinkPatch,
  { exchangeId, stateHash, version }: LinkGuard,
) {
  return {
    ...patch,
    ...(formValues === undefined ? {} : { formValues: jsonb(formValues) }),
    ...(acceptedTerms === undefined ? {} : { acceptedTerms }),
    ...(exchangeId === undefined ? {} : { guardExchangeId: exchangeId }),
    ...(stateHash === undefined ? {} : { guardStateHash: stateHash }),
    ...(version === undefined ? {} : { guardVersion: version }),
  }
}

/** Every change of the sessions' statuses, oldest first, by id of the session. Uses the primary key. */
export async function listLinkTransitions(
  tx: Db,
  environmentId: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, readonly LinkTransition[]>> {
  const found = await query<LinkTransition & { readonly id: string }>(
    tx,
    `select link_session_id as id, from_status, to_status, cause,
       error_code, message, occurred_at
     from link_session_transition where environment_id = :environmentId and link_session_id = any(:ids)
     order by link_session_id, version`,
    { environmentId, ids },
  )
  return Map.groupBy(found, ({ id }) => id)
}
