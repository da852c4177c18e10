import { type JsonObject, REGIONS } from '../../base/index.ts'
import { type Db, dueInRegionsSql, execute, jsonb, query, queryOne } from '../../database/index.ts'
import type { AccountRef } from './integrated-account.ts'

/** A lease on the token of an account: its holder alone requests the next token, until the lease expires or is lost. */
export interface TokenLease extends AccountRef {
  readonly leaseId: string
  /** Of the token that is to be replaced; 0: there was none yet. */
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
const INTERRUPTED_AT = `interrupted_at = case when token.lease_id is null then token.interrupted_at
  else coalesce(token.interrupted_at, token.lease_expires_at - :leaseMs * interval '1 millisecond') end`

/** The outcome of asking for a lease. */
export type TokenLeaseAttempt =
  | { readonly kind: 'taken'; readonly lease: TokenLease }
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
       insert into account_token as token (environment_id, integrated_account_id, region, lease_id, lease_expires_at)
       values (:environmentId, :id, :region, :leaseId, now() + :leaseMs * interval '1 millisecond')
       on conflict (environment_id, integrated_account_id) do update
         set lease_id = excluded.lease_id, lease_expires_at = excluded.lease_expires_at, ${INTERRUPTED_AT}
         where token.version = :version and (token.lease_id is null or token.lease_expires_at <= now())
           and (:isForced or token.retry_at is null or token.retry_at <= now())
       returning failures, interrupted_at
     )
     select taken.failures as "failuresIfTaken", taken.interrupted_at as "interruptedAt", token.version, token.error,
       extract(epoch from token.retry_at - now()) * 1000 as "retryAfterMs"
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

function leaseAttempt(found: TokenLeaseRow, wanted: Omit<TokenLease, 'failures' | 'interruptedAt'>): TokenLeaseAttempt {
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

/**
 * Records a new token and ends the lease; returns the token's version, `undefined` when the lease was lost. Uses the primary
 * key.
 */
export async function completeTokenRefresh(
  tx: Db,
  { environmentId, id, leaseId, version }: TokenLease,
  { expiresAt, dueAt }: TokenTimes,
): Promise<number | undefined> {
  const stored = await queryOne<{ version: number }>(
    tx,
    `update account_token set version = version + 1, expires_at = :expiresAt, due_at = :dueAt, lease_id = null,
       lease_expires_at = null, interrupted_at = null, failures = 0, retry_at = null, error = null
     where environment_id = :environmentId and integrated_account_id = :id and lease_id = :leaseId and version = :version
     returning version`,
    { expiresAt, dueAt, environmentId, id, leaseId, version },
  )
  return stored?.version
}

/**
 * Records a failed request and ends the lease; returns whether the caller still held it. Uses the primary key.
 *
 * @param failed.error `{kind, message}`, without secrets
 * @param failed.isFinal whether the background stops refreshing; else it tries again after the delay
 */
export async function failTokenRefresh(
  tx: Db,
  { environmentId, id, leaseId, version }: TokenLease,
  failed: { readonly error: JsonObject; readonly retryDelayMs: number; readonly isFinal: boolean },
): Promise<boolean> {
  const { error, retryDelayMs, isFinal } = failed
  const changed = await execute(
    tx,
    `update account_token set lease_id = null, lease_expires_at = null, failures = failures + 1, error = :error::jsonb,
       retry_at = now() + :retryDelayMs * interval '1 millisecond',
       due_at = case when not :isFinal and due_at is not null then now() + :retryDelayMs * interval '1 millisecond' end
     where environment_id = :environmentId and integrated_account_id = :id and lease_id = :leaseId and version = :version`,
    { error: jsonb(error), retryDelayMs, isFinal, environmentId, id, leaseId, version },
  )
  return changed > 0
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
         lease_expires_at = null, interrupted_at = null, failures = 0, retry_at = null, error = null
     returning version`,
    { environmentId, id, region, expiresAt, dueAt },
  )
  if (stored === undefined) throw new Error('an upsert returned no row')
  return stored.version
}

/** A claim of due tokens. */
export interface DueTokenClaim {
  readonly leaseId: string
  readonly leaseMs: number
  /** Only accounts of these regions; `undefined`: all. */
  readonly regions: readonly string[] | undefined
  readonly limit: number
}

const DUE = dueInRegionsSql({
  table: 'account_token',
  key: ['environment_id', 'integrated_account_id'],
  due: 'due_at',
  condition: '(lease_id is null or lease_expires_at <= now())',
})

/**
 * Takes the leases of due tokens, the longest overdue first. Workers claim concurrently: rows that another one locks are
 * skipped. Uses account_token_due.
 */
export async function claimDueTokens(
  tx: Db,
  { leaseId, leaseMs, regions, limit }: DueTokenClaim,
): Promise<readonly TokenLease[]> {
  return await query(
    tx,
    `with due as materialized (${DUE})
     update account_token token set lease_id = :leaseId, lease_expires_at = now() + :leaseMs * interval '1 millisecond',
       ${INTERRUPTED_AT}
     from due
     where token.environment_id = due.environment_id and token.integrated_account_id = due.integrated_account_id
     returning token.environment_id as "environmentId", token.integrated_account_id as id, token.lease_id as "leaseId",
       token.version, token.failures, token.interrupted_at as "interruptedAt"`,
    { leaseId, leaseMs, regions: regions ?? REGIONS, limit },
  )
}
