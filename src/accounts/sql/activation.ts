import { type JsonObject, REGIONS } from '../../base/index.ts'
import { type Db, dueInRegionsSql, execute, jsonb, queryOne } from '../../database/index.ts'
import type { AccountRef } from './integrated-account.ts'

/**
 * A lease on a connecting account: its holder alone activates it. It ends when it expires, when another worker claims the
 * account, or when the account is reconnected.
 */
export interface ActivationLease extends AccountRef {
  readonly leaseId: string
  /** This one included. */
  readonly attempts: number
}

/** A claim as it is made. */
export interface ActivationClaim {
  readonly leaseId: string
  readonly leaseMs: number
  /** Only accounts of these regions; `undefined`: all. */
  readonly regions: readonly string[] | undefined
}

/** The condition of every write of a holder. */
const UNDER_LEASE = `environment_id = :environmentId and id = :id and connecting_lease_id = :leaseId
  and status = 'connecting'`

const DUE = dueInRegionsSql({
  table: 'integrated_account',
  key: ['environment_id', 'id'],
  due: 'connecting_due_at',
  condition: `status = 'connecting'`,
})

/**
 * Claims the connecting account that has been due the longest. Workers claim concurrently: rows that another one locks are
 * skipped. Uses integrated_account_connecting.
 */
export async function claimConnectingAccount(
  tx: Db,
  { leaseId, leaseMs, regions }: ActivationClaim,
): Promise<ActivationLease | undefined> {
  return await queryOne(
    tx,
    `with due as materialized (${DUE})
     update integrated_account account set connecting_lease_id = :leaseId, connecting_tries = connecting_tries + 1,
       connecting_due_at = now() + :leaseMs * interval '1 millisecond'
     from due
     where account.environment_id = due.environment_id and account.id = due.id
     returning account.environment_id as "environmentId", account.id, account.connecting_lease_id as "leaseId",
       account.connecting_tries as attempts`,
    { leaseId, leaseMs, regions: regions ?? REGIONS, limit: 1 },
  )
}

/**
 * Stores the result of a phase while the lease is held; returns whether it is. The account's version (etag) stays. Uses the
 * primary key.
 *
 * @param result replaces the stored values of the same keys
 */
export async function storePhaseResult(
  tx: Db,
  { environmentId, id, leaseId }: ActivationLease,
  result: JsonObject,
): Promise<boolean> {
  const stored = await execute(
    tx,
    `update integrated_account set last_action_result = last_action_result || :result::jsonb where ${UNDER_LEASE}`,
    { result: jsonb(result), environmentId, id, leaseId },
  )
  return stored > 0
}

/** Stores the id that the third party gives the account, while the lease is held. Uses the primary key. */
export async function storeExternalId(
  tx: Db,
  { environmentId, id, leaseId }: ActivationLease,
  externalId: string,
): Promise<void> {
  const sql = `update integrated_account set external_id = :externalId where ${UNDER_LEASE} and external_id is null`
  await execute(tx, sql, { externalId, environmentId, id, leaseId })
}

/** When a connecting account is tried again. */
export interface ActivationPostponement {
  readonly delayMs: number
  /** Whether the attempt counts. */
  readonly isCounted: boolean
  /** What the account shows meanwhile; `result` replaces the values of the same keys. Absent: what it showed before. */
  readonly shown?: { readonly error: string; readonly result: JsonObject }
}

/** Releases the lease; the account is due again after a delay. Its version (etag) stays. Uses the primary key. */
export async function postponeActivation(
  tx: Db,
  { environmentId, id, leaseId, attempts }: ActivationLease,
  { delayMs, isCounted, shown }: ActivationPostponement,
): Promise<void> {
  await execute(
    tx,
    `update integrated_account set connecting_lease_id = null, connecting_tries = :attempts,
       connecting_due_at = now() + :delayMs * interval '1 millisecond', last_error = coalesce(:error, last_error),
       last_action_result = last_action_result || :result::jsonb where ${UNDER_LEASE}`,
    {
      attempts: isCounted ? attempts : attempts - 1,
      delayMs,
      error: shown?.error ?? null,
      result: jsonb(shown?.result ?? {}),
      environmentId,
      id,
      leaseId,
    },
  )
}
