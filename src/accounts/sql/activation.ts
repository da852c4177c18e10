import type { JsonObject } from '../../base/index.ts'
import { execute, jsonb, queryOne, type Tx } from '../../database/index.ts'

/** Names an account. */
export interface AccountRef {
  readonly environmentId: string
  readonly id: string
}

/** The right to connect an account, until it expires, is taken over, or the account is to be connected anew. */
export interface ActivationLease extends AccountRef {
  readonly leaseId: string
  /** This one included. */
  readonly attempts: number
}

/** A claim as it is made. */
export interface ActivationClaim {
  readonly leaseId: string
  readonly leaseMs: number
  /** Only accounts that live in one of these; `undefined`: all. */
  readonly regions: readonly string[] | undefined
}

/** What every statement of a holder is bound to. */
const UNDER_LEASE = `environment_id = ? and id = ? and connecting_lease_id = ? and status = 'connecting'`

/**
 * Takes the connecting account that has been due the longest. Any number of workers may do so at once: rows that another one
 * is looking at are skipped. Rides on integrated_account_connecting.
 */
export async function claimConnectingAccount(
  tx: Tx,
  { leaseId, leaseMs, regions }: ActivationClaim,
): Promise<ActivationLease | undefined> {
  return await queryOne(
    tx,
    `update integrated_account account set connecting_lease_id = ?, connecting_tries = connecting_tries + 1,
       connecting_due_at = now() + ? * interval '1 millisecond'
     from (
       select environment_id, id from integrated_account
       where status = 'connecting' and connecting_due_at <= now()
         and (?::text[] is null or region = any(?::text[]))
       order by connecting_due_at limit 1 for update skip locked
     ) due
     where account.environment_id = due.environment_id and account.id = due.id
     returning account.environment_id as "environmentId", account.id, account.connecting_lease_id as "leaseId",
       account.connecting_tries as attempts`,
    [leaseId, leaseMs, regions ?? null, regions ?? null],
  )
}

/**
 * Adds what steps of an account came to, as long as the lease is the caller's; returns whether it is. Counts as no change of
 * the account: its etag stays.
 *
 * @param result replaces what is kept under the same keys
 */
export async function storePhaseResult(tx: Tx, lease: ActivationLease, result: JsonObject): Promise<boolean> {
  const sql = `update integrated_account set last_action_result = last_action_result || ?::jsonb where ${UNDER_LEASE}`
  return (await execute(tx, sql, [jsonb(result), ...leaseBindings(lease)])) > 0
}

/** When a connecting account is tried again. */
export interface ActivationPostponement {
  readonly delayMs: number
  /** Whether the attempt counts. */
  readonly isCounted: boolean
  /** What the account shows meanwhile; `result` replaces the values of the same keys. Absent: what it showed before. */
  readonly shown?: { readonly error: string; readonly result: JsonObject }
}

/** Gives the account back, to be taken again after a pause. Counts as no change of the account: its etag stays. */
export async function postponeActivation(
  tx: Tx,
  lease: ActivationLease,
  { delayMs, isCounted, shown }: ActivationPostponement,
): Promise<void> {
  await execute(
    tx,
    `update integrated_account set connecting_lease_id = null, connecting_tries = ?,
       connecting_due_at = now() + ? * interval '1 millisecond', last_error = coalesce(?, last_error),
       last_action_result = last_action_result || ?::jsonb where ${UNDER_LEASE}`,
    [
      isCounted ? lease.attempts : lease.attempts - 1,
      delayMs,
      shown?.error ?? null,
      jsonb(shown?.result ?? {}),
      ...leaseBindings(lease),
    ],
  )
}

function leaseBindings({ environmentId, id, leaseId }: ActivationLease): readonly string[] {
  return [environmentId, id, leaseId]
}
