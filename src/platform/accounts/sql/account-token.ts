import { type Db, jsonb, queryOne } from '../../../foundation/database/index.ts'
import type { JsonObject } from '../../../foundation/json/index.ts'
import type { DueSettlement, DueTable, Lease } from '../../../foundation/queue/index.ts'
import { type AccountRef, isKeptSql } from './integrated-account.ts'

/** A token that is to be replaced by the next one, which the holder of the lease alone requests. */
export interface TokenRefresh extends AccountRef {
  /** Of the token; 0: there was none yet. */
  readonly version: number
  /** Failed requests in a row, so far. */
  readonly failures: number
  /**
   * When a holder last took the lease and neither stored a token nor an error: its process died or lost the database. The
   * response to its request may be lost. Null: not since the last token.
   */
  readonly interruptedAt: Date | null
}

/** A lease that is taken over had a holder that was interrupted; the first interruption since the last token counts. */
const INTERRUPTED_AT = `interrupted_at = case when item.lease_id is null then item.interrupted_at
  else coalesce(item.interrupted_at, item.lease_expires_at - :leaseMs * interval '1 millisecond') end`

/** Token refreshes. A lease also ends when the token is replaced by one from elsewhere. Uses account_token_due. */
export const TOKEN_REFRESHES: DueTable<TokenRefresh> = {
  table: 'account_token',
  columns: {
    environmentId: 'environment_id',
    id: 'integrated_account_id',
    version: 'version',
    failures: 'failures',
    interruptedAt: 'interrupted_at',
  },
  key: ['environmentId', 'id'],
  due: 'due_at',
  leaseId: 'lease_id',
  leaseEnd: 'lease_expires_at',
  condition: isKeptSql('account_token', 'integrated_account_id'),
  onClaim: INTERRUPTED_AT,
}

/** The outcome of asking for a lease. */
export type TokenLeaseAttempt =
  | { readonly kind: 'taken'; readonly lease: Lease<TokenRefresh> }
  /** Another process is requesting the token. */
  | { readonly kind: 'held' }
  /** The token is not the one the caller saw: read it again. */
  | { readonly kind: 'outdated'; readonly version: number }
  /** The last request failed, and the back-off after it is not over. */
  | { readonly kind: 'backing_off'; readonly error: JsonObject; readonly retryAfterMs: number }

/** A lease as it is asked for. */
export interface TokenLeaseRequest {
  readonly leaseId: string
  readonly leaseMs: number
  /** Of the token the caller saw; 0: none. */
  readonly version: number
  /** Take the lease although the back-off after a failure is not over. */
  readonly isForced: boolean
}

/**
 * Takes the lease if it is free, the token is the one that was seen and no back-off is under way. One statement: of any number
 * of callers one gets the lease, by the row lock of the upsert. Uses the primary key.
 */
export async function acquireTokenLease(
  tx: Db,
  { environmentId, id, region }: AccountRef & { readonly region: string },
  { leaseId, leaseMs, version, isForced }: TokenLeaseRequest,
): Promise<TokenLeaseAttempt> {
  const found = await queryOne<TokenLeaseRow>(
    tx,
    `with taken as (
       insert into account_token as item (environment_id, integrated_account_id, region, lease_id, lease_expires_at)
       values (:environmentId, :id, :region, :leaseId, now() + :leaseMs * interval '1 millisecond')
       on conflict (environment_id, integrated_account_id) do update
         set lease_id = excluded.lease_id, lease_expires_at = excluded.lease_expires_at, ${INTERRUPTED_AT}
         where item.version = :version and (item.lease_id is null or item.lease_expires_at <= now())
           and (:isForced or item.retry_at is null or item.retry_at <= now())
       returning failures, interrupted_at
     )
     select taken.failures as failures_if_taken, taken.interrupted_at, token.version, token.error,
       extract(epoch from token.retry_at - now()) * 1000 as retry_after_ms
     from (values (1)) one
     left join taken on true
     left join account_token token on environment_id = :environmentId and integrated_account_id = :id`,
    { environmentId, id, region, leaseId, leaseMs, version, isForced },
  )
  if (found === undefined) throw new Error('a select of one row returned none')
  return leaseAttempt(found, { environmentId, id, leaseId, version })
}

interface TokenLeaseRow {
  /** Null: the lease was not taken. */
  readonly failuresIfTaken: number | null
  readonly interruptedAt: Date | null
  readonly version: number | null
  readonly error: JsonObject | null
  readonly retryAfterMs: string | null
}

function leaseAttempt(
  found: TokenLeaseRow,
  wanted: Omit<Lease<TokenRefresh>, 'failures' | 'interruptedAt'>,
): TokenLeaseAttempt {
  const { failuresIfTaken: failures, interruptedAt } = found
  if (failures !== null) return { kind: 'taken', lease: { ...wanted, failures, interruptedAt } }
  if (found.version !== null && found.version !== wanted.version) return { kind: 'outdated', version: found.version }
  const retryAfterMs = Number(found.retryAfterMs ?? 0)
  if (found.error !== null && retryAfterMs > 0) return { kind: 'backing_off', error: found.error, retryAfterMs }
  return { kind: 'held' }
}

/** When a token expires and is refreshed. */
export interface TokenTimes {
  readonly expiresAt: Date | null
  /** From when on the background refreshes it; null: never. */
  readonly dueAt: Date | null
}

/** A new token, of the version after that of the lease. */
export function grantedToken({ expiresAt, dueAt }: TokenTimes): DueSettlement {
  const set = `version = version + 1, expires_at = :expiresAt, due_at = :dueAt, interrupted_at = null, failures = 0,
    failing_since = null, granted_at = now(), retry_at = null, error = null`
  return { set, values: { expiresAt, dueAt } }
}

/**
 * A failed request.
 *
 * @param failed.error `{kind, message}`, without secrets
 * @param failed.isFinal whether the background stops refreshing; else it tries again after the delay
 */
export function failedRefresh(failed: {
  readonly error: JsonObject
  readonly retryDelayMs: number
  readonly isFinal: boolean
}): DueSettlement {
  const { error, retryDelayMs, isFinal } = failed
  const set = `failures = failures + 1, failing_since = coalesce(failing_since, now()), error = :error::jsonb, retry_at = now() + :retryDelayMs * interval '1 millisecond',
    due_at = case when not :isFinal and due_at is not null then now() + :retryDelayMs * interval '1 millisecond' end`
  return { set, values: { error: jsonb(error), retryDelayMs, isFinal } }
}

/** Accounts of an installation, the latest ones, that tell whether its client works. */
const OTHERS_MAX = 100

/**
 * Whether another account of the installation was granted a token since the requests of this one began to fail. Looks at the latest 100.
 * Uses integrated_account_of_installation and primary keys.
 */
export async function areOthersGranted(
  tx: Db,
  account: AccountRef & { readonly environmentIntegrationId: string },
): Promise<boolean> {
  const { environmentId, id, environmentIntegrationId } = account
  const found = await queryOne<{ areGranted: boolean }>(
    tx,
    `select exists (
       select 1 from (
         select id from integrated_account
         where environment_id = :environmentId and environment_integration_id = :environmentIntegrationId
         order by id desc limit ${OTHERS_MAX}) latest
       join account_token other on other.environment_id = :environmentId and other.integrated_account_id = latest.id
       join account_token own on own.environment_id = :environmentId and own.integrated_account_id = :id
       where latest.id <> :id and other.granted_at > own.failing_since) as are_granted`,
    { environmentId, id, environmentIntegrationId },
  )
  return found?.areGranted ?? false
}

/**
 * Replaces the token by one from elsewhere, or by none; a refresh under way loses its lease. Returns the version of the new
 * token. Uses the primary key.
 */
export async function resetToken(
  tx: Db,
  { environmentId, id, region }: AccountRef & { readonly region: string },
  { expiresAt, dueAt }: TokenTimes,
): Promise<number> {
  const stored = await queryOne<{ version: number }>(
    tx,
    `insert into account_token as token (environment_id, integrated_account_id, region, version, expires_at, due_at)
     values (:environmentId, :id, :region, 1, :expiresAt, :dueAt)
     on conflict (environment_id, integrated_account_id) do update
       set version = token.version + 1, expires_at = excluded.expires_at, due_at = excluded.due_at, lease_id = null,
         lease_expires_at = null, interrupted_at = null, failures = 0, failing_since = null, retry_at = null, error = null
     returning version`,
    { environmentId, id, region, expiresAt, dueAt },
  )
  if (stored === undefined) throw new Error('an upsert returned no row')
  return stored.version
}
