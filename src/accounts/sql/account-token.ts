import type { JsonObject } from '../../base/index.ts'
import { execute, jsonb, query, queryOne, type Tx } from '../../database/index.ts'
import type { AccountRef } from './activation.ts'

/** The right to ask for the next token of an account, until it expires or is taken over. */
export interface TokenLease extends AccountRef {
  readonly leaseId: string
  /** Of the token that is to be replaced; 0: there was none yet. */
  readonly version: number
  /** In a row, so far. */
  readonly failures: number
}

/** How asking for a lease ended. */
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
  /** Ask although the pause after a failure is not over. */
  readonly isForced: boolean
}

/**
 * Takes the lease if it is free, the token still the one that was seen and no pause on. One statement on the primary key: of
 * any number of callers one gets the lease, by the row lock of the upsert.
 */
export async function acquireTokenLease(
  tx: Tx,
  account: AccountRef & { readonly region: string },
  { leaseId, leaseMs, version, isForced }: TokenLeaseRequest,
): Promise<TokenLeaseAttempt> {
  const found = await queryOne<TokenLeaseRow>(
    tx,
    `with taken as (
       insert into account_token as token (environment_id, integrated_account_id, region, lease_id, lease_expires_at)
       values (?, ?, ?, ?, now() + ? * interval '1 millisecond')
       on conflict (environment_id, integrated_account_id) do update
         set lease_id = excluded.lease_id, lease_expires_at = excluded.lease_expires_at
         where token.version = ? and (token.lease_id is null or token.lease_expires_at <= now())
           and (?::boolean or token.retry_at is null or token.retry_at <= now())
       returning failures
     )
     select (select failures from taken) as "takenAfter", token.version, token.refusal,
       extract(epoch from token.retry_at - now()) * 1000 as "retryAfterMs"
     from (values (1)) one left join account_token token on environment_id = ? and integrated_account_id = ?`,
    [
      account.environmentId,
      account.id,
      account.region,
      leaseId,
      leaseMs,
      version,
      isForced,
      account.environmentId,
      account.id,
    ],
  )
  if (found === undefined) throw new Error('a select of one row returned none')
  return attemptFrom(found, { environmentId: account.environmentId, id: account.id, leaseId, version })
}

interface TokenLeaseRow {
  /** Failures of the token whose lease was taken; null: it was not. */
  readonly takenAfter: number | null
  readonly version: number | null
  readonly refusal: JsonObject | null
  readonly retryAfterMs: string | null
}

function attemptFrom(found: TokenLeaseRow, wanted: Omit<TokenLease, 'failures'>): TokenLeaseAttempt {
  if (found.takenAfter !== null) return { kind: 'taken', lease: { ...wanted, failures: found.takenAfter } }
  if (found.version !== null && found.version !== wanted.version) return { kind: 'outdated', version: found.version }
  const retryAfterMs = Number(found.retryAfterMs ?? 0)
  if (found.refusal !== null && retryAfterMs > 0) return { kind: 'backing_off', error: found.refusal, retryAfterMs }
  return { kind: 'held' }
}

/** Moments of a token. */
export interface TokenTimes {
  readonly expiresAt: Date | null
  /** From when on the background asks for the next one; null: never. */
  readonly dueAt: Date | null
}

/** Counts the new token and ends the lease; its version, or `undefined` when the lease was taken over meanwhile. */
export async function completeTokenRefresh(tx: Tx, lease: TokenLease, times: TokenTimes): Promise<number | undefined> {
  const stored = await queryOne<{ version: number }>(
    tx,
    `update account_token set version = version + 1, expires_at = ?, due_at = ?, lease_id = null,
       lease_expires_at = null, failures = 0, retry_at = null, refusal = null
     where environment_id = ? and integrated_account_id = ? and lease_id = ? and version = ? returning version`,
    [times.expiresAt, times.dueAt, lease.environmentId, lease.id, lease.leaseId, lease.version],
  )
  return stored?.version
}

/**
 * Notes that there is no new token, and ends the lease. Returns whether the lease was still the caller's.
 *
 * @param refusal `{kind, message}`, without secrets
 * @param isEndedStatus whether the background is to leave it; else it asks again after the pause
 */
export async function failTokenRefresh(
  tx: Tx,
  lease: TokenLease,
  failed: { readonly error: JsonObject; readonly retryDelayMs: number; readonly isFinal: boolean },
): Promise<boolean> {
  const changed = await execute(
    tx,
    `update account_token set lease_id = null, lease_expires_at = null, failures = failures + 1, refusal = ?::jsonb,
       retry_at = now() + ? * interval '1 millisecond',
       due_at = case when ?::boolean then null when due_at is not null then now() + ? * interval '1 millisecond' end
     where environment_id = ? and integrated_account_id = ? and lease_id = ? and version = ?`,
    [
      jsonb(failed.error),
      failed.retryDelayMs,
      failed.isFinal,
      failed.retryDelayMs,
      lease.environmentId,
      lease.id,
      lease.leaseId,
      lease.version,
    ],
  )
  return changed > 0
}

/**
 * Begins anew with a token from elsewhere, or with none: whoever is asking meanwhile finds its lease gone. Returns the
 * version that the given token has.
 */
export async function resetToken(
  tx: Tx,
  account: AccountRef & { readonly region: string },
  times: TokenTimes,
): Promise<number> {
  const stored = await queryOne<{ version: number }>(
    tx,
    `insert into account_token as token (environment_id, integrated_account_id, region, version, expires_at, due_at)
     values (?, ?, ?, 1, ?, ?)
     on conflict (environment_id, integrated_account_id) do update
       set version = token.version + 1, expires_at = excluded.expires_at, due_at = excluded.due_at, lease_id = null,
         lease_expires_at = null, failures = 0, retry_at = null, refusal = null
     returning version`,
    [account.environmentId, account.id, account.region, times.expiresAt, times.dueAt],
  )
  if (stored === undefined) throw new Error('an upsert returned no row')
  return stored.version
}

/**
 * Takes the leases of tokens that are due, the longest overdue first. Any number of workers may do so at once: rows that
 * another one is looking at are skipped. Rides on account_token_due.
 */
export async function claimDueTokens(
  tx: Tx,
  {
    leaseId,
    leaseMs,
    regions,
    limit,
  }: { leaseId: string; leaseMs: number; regions: readonly string[] | undefined; limit: number },
): Promise<readonly TokenLease[]> {
  return await query(
    tx,
    `update account_token token set lease_id = ?, lease_expires_at = now() + ? * interval '1 millisecond'
     from (
       select environment_id, integrated_account_id from account_token
       where due_at <= now() and (lease_id is null or lease_expires_at <= now())
         and (?::text[] is null or region = any(?::text[]))
       order by due_at limit ? for update skip locked
     ) due
     where token.environment_id = due.environment_id and token.integrated_account_id = due.integrated_account_id
     returning token.environment_id as "environmentId", token.integrated_account_id as id, token.lease_id as "leaseId",
       token.version, token.failures`,
    [leaseId, leaseMs, regions ?? null, regions ?? null, limit],
  )
}
