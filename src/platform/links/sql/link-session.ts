import {
  type Db,
  deleteBatchOfEnvironment,
  execute,
  type IdPage,
  jsonb,
  query,
  queryForValues,
  queryOne,
  type Tx,
} from '../../../foundation/database/index.ts'
import type { LinkErrorCode } from '../error-codes.ts'
import type { LinkSession } from '../session.ts'
import type { LinkCause, LinkStatus } from '../status.ts'

/** Names a session. */
export interface LinkSessionKey {
  readonly environmentId: string
  readonly id: string
}

/** A session as stored, with what only this module may see. */
export interface LinkSessionRecord extends Omit<LinkSession, 'step' | 'error'> {
  readonly tokenHash: Uint8Array
  readonly browserKeyHash: Uint8Array | null
  /** Callback address of the authorisation under way. */
  readonly callbackUri: string
  readonly sealedValues: Uint8Array | null
  readonly errorCode: LinkErrorCode | null
  readonly errorMessage: string
  /** A popup was opened with a ticket. */
  readonly isPopup: boolean
  /** By the database's clock: the session expired, and its status does not say so yet. */
  readonly isOverdue: boolean
  /** The state of the authorisation expired. */
  readonly isStateExpired: boolean
  /** The exchange lasts longer than one can: its process died. */
  readonly isExchangeLost: boolean
}

/** A session to be stored. */
export interface NewLinkSession
  extends Pick<
    LinkSession,
    | 'id'
    | 'environmentId'
    | 'tenantId'
    | 'isReconnect'
    | 'integratedAccountId'
    | 'allowedInstallationIds'
    | 'allowedCredentials'
    | 'environmentIntegrationId'
    | 'context'
    | 'scopes'
    | 'region'
    | 'isSandbox'
    | 'objectStoreContextFields'
    | 'redirectUri'
    | 'origins'
    | 'locale'
    | 'persistPreviousContext'
    | 'skipPostConnectForm'
  > {
  readonly tokenHash: Uint8Array
  /** Absent: `lifetimeMs` from now. */
  readonly expiresAt: Date | undefined
  readonly lifetimeMs: number
}

/** Which sessions to list; an undefined field does not restrict. */
export interface LinkSessionFilter {
  readonly tenantId?: string | undefined
  readonly integratedAccountId?: string | undefined
  readonly status?: LinkStatus | undefined
}

/** An exchange may take this long: token requests have 10 s each, and the transaction that stores the account. */
const EXCHANGE_MS_MAX = 60_000
export const IS_EXCHANGE_LOST = `(session.status = 'exchanging'
  and session.status_at < now() - ${EXCHANGE_MS_MAX} * interval '1 millisecond')`
/** As the index link_session_expiry has it. */
export const IS_OVERDUE = `(session.status in ('created', 'opened', 'form', 'redirected', 'pending', 'post_connect_form')
  and session.expires_at <= now())`

export const SESSION_COLUMNS = `session.id, session.environment_id, session.token_hash, session.status,
  session.tenant_id, session.is_reconnect, session.integrated_account_id, session.allowed_installation_ids,
  session.allowed_credentials, session.scopes, session.context, session.region, session.is_sandbox,
  session.object_store_context_fields, session.redirect_uri, session.origins, session.locale,
  session.persist_previous_context, session.skip_post_connect_form, session.expires_at,
  session.environment_integration_id, integration.name as integration_name, session.authentication_method,
  coalesce(session.credential, session.authentication_method) as credential, session.form_values,
  session.terms_url, session.terms_accepted_at, session.attempts, session.browser_key_hash, session.callback_uri,
  session.granted_scopes, session.missing_scopes, session.sealed_values, session.is_popup, session.error_code,
  session.error_message, session.created_at,
  session.updated_at, session.version, ${IS_OVERDUE} as is_overdue,
  coalesce(session.state_expires_at <= now(), true) as is_state_expired, ${IS_EXCHANGE_LOST} as is_exchange_lost`
export const INTEGRATION_JOIN = `join environment on environment.id = session.environment_id and environment.deleted_at is null
  left join environment_integration installation
    on installation.environment_id = session.environment_id and installation.id = session.environment_integration_id
    and not installation.is_hidden
  left join integration on integration.id = installation.integration_id`

/** Stores a session and the first row of its history. */
export async function insertLinkSession(tx: Tx, session: NewLinkSession): Promise<void> {
  const { environmentId, id, lifetimeMs } = session
  await tx('link_session').insert({
    environment_id: environmentId,
    id,
    token_hash: session.tokenHash,
    status: 'created',
    tenant_id: session.tenantId,
    is_reconnect: session.isReconnect,
    integrated_account_id: session.integratedAccountId,
    allowed_installation_ids: session.allowedInstallationIds === null ? null : [...session.allowedInstallationIds],
    allowed_credentials: session.allowedCredentials === null ? null : [...session.allowedCredentials],
    environment_integration_id: session.environmentIntegrationId,
    scopes: [...session.scopes],
    context: jsonb(session.context),
    region: session.region,
    is_sandbox: session.isSandbox,
    object_store_context_fields: [...session.objectStoreContextFields],
    redirect_uri: session.redirectUri,
    origins: [...session.origins],
    locale: session.locale,
    persist_previous_context: session.persistPreviousContext,
    skip_post_connect_form: session.skipPostConnectForm,
    expires_at: session.expiresAt ?? tx.raw("now() + ? * interval '1 millisecond'", [lifetimeMs]),
  })
  await tx('link_session_transition').insert({
    environment_id: environmentId,
    link_session_id: id,
    version: 1,
    to_status: 'created',
    cause: 'token_created' satisfies LinkCause,
  })
}

/** Uses the primary key. */
export async function findLinkSessionRecord(
  tx: Db,
  { environmentId, id }: LinkSessionKey,
): Promise<LinkSessionRecord | undefined> {
  return await queryOne(
    tx,
    `select ${SESSION_COLUMNS} from link_session session ${INTEGRATION_JOIN}
     where session.environment_id = :environmentId and session.id = :id`,
    { environmentId, id },
  )
}

/** For callers who are known by a secret of the session, which they have to prove. Uses link_session_id. */
export async function findLinkSessionById(tx: Db, id: string): Promise<LinkSessionRecord | undefined> {
  return await queryOne(
    tx,
    `select ${SESSION_COLUMNS} from link_session session ${INTEGRATION_JOIN} where session.id = :id`,
    { id },
  )
}

/** The session whose latest authorisation has the state, used or not. Uses link_session_state. */
export async function findLinkSessionByState(tx: Db, stateHash: Uint8Array): Promise<LinkSessionRecord | undefined> {
  return await queryOne(
    tx,
    `select ${SESSION_COLUMNS} from link_session session ${INTEGRATION_JOIN} where session.state_hash = :stateHash`,
    { stateHash },
  )
}

/** Sessions of an account whose activation they wait for. Uses link_session_of_account. */
export async function listActivatingSessions(
  tx: Db,
  { environmentId, id }: LinkSessionKey,
): Promise<readonly LinkSessionRecord[]> {
  return await query(
    tx,
    `select ${SESSION_COLUMNS} from link_session session ${INTEGRATION_JOIN}
     where session.environment_id = :environmentId and session.integrated_account_id = :id
       and session.status in ('post_install', 'validating')`,
    { environmentId, id },
  )
}

/**
 * At most `limit` sessions below the id `before`, newest first; by the status that settling gives them. Uses the primary key,
 * link_session_of_tenant, _of_account or _of_status; the text names only the filters given, so that the planner sees which.
 */
export async function selectLinkSessions(
  tx: Db,
  environmentId: string,
  filter: LinkSessionFilter,
  { before, limit }: IdPage,
): Promise<readonly LinkSessionRecord[]> {
  const conditions = [
    'session.environment_id = :environmentId',
    filter.tenantId !== undefined && 'session.tenant_id = :tenantId',
    filter.integratedAccountId !== undefined && 'session.integrated_account_id = :integratedAccountId',
    before !== undefined && 'session.id < :before::uuid',
  ]
  const newest = conditionsOfStatus(filter.status).map(
    (ofStatus) => `(select * from link_session session
       where ${[...conditions, ofStatus].filter(Boolean).join(' and ')} order by session.id desc limit :limit)`,
  )
  return await queryForValues(
    tx,
    `select ${SESSION_COLUMNS} from (${newest.join(' union all ')}) session ${INTEGRATION_JOIN}
     order by session.id desc limit :limit`,
    {
      environmentId,
      tenantId: filter.tenantId ?? null,
      integratedAccountId: filter.integratedAccountId ?? null,
      status: filter.status ?? null,
      before: before ?? null,
      limit,
    },
  )
}

/** SQL: the sessions that settling gives the status are those of all of these. */
function conditionsOfStatus(status: LinkStatus | undefined): readonly (string | undefined)[] {
  if (status === undefined) return [undefined]
  const settled = `session.status = :status and not ${IS_OVERDUE} and not ${IS_EXCHANGE_LOST}`
  if (status === 'expired') return [settled, IS_OVERDUE]
  return status === 'form' ? [settled, IS_EXCHANGE_LOST] : [settled]
}

/** At most `limit` sessions whose time is over, or whose exchange was lost. Uses link_session_expiry and _exchange. */
export async function listDueSessions(tx: Db, limit: number): Promise<readonly LinkSessionRecord[]> {
  return await query(
    tx,
    `select ${SESSION_COLUMNS} from (
       (select * from link_session session where ${IS_OVERDUE} order by expires_at limit :limit)
       union all
       (select * from link_session session where ${IS_EXCHANGE_LOST} order by status_at limit :limit)
     ) session ${INTEGRATION_JOIN}`,
    { limit },
  )
}

/** Deletes at most `limit` sessions that ended longer ago than that; their history goes with them. Uses link_session_ended. */
export async function deleteEndedSessions(tx: Db, olderThanMs: number, limit: number): Promise<number> {
  return await execute(
    tx,
    `delete from link_session where (environment_id, id) in (
       select environment_id, id from link_session
       where status in ('completed', 'failed', 'expired', 'cancelled')
         and status_at < now() - :olderThanMs * interval '1 millisecond'
       order by status_at limit :limit)`,
    { olderThanMs, limit },
  )
}

/** Deletes a batch of the sessions of a deleted environment; returns whether there are no more. */
export async function deleteLinkSessionsOfEnvironment(tx: Db, environmentId: string): Promise<boolean> {
  return await deleteBatchOfEnvironment(tx, ['link_session'], environmentId)
}
