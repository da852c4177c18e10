import { execute, jsonb, query, type Tx } from '../../database/index.ts'
import type { AccountRef, ForbiddenError, IntegratedAccountRecord } from './integrated-account.ts'

/**
 * Stores the last 403 and returns whether it did; the account's version (etag) stays. The same error within `dedupWindowMs` is not written again, because
 * a sync without permissions would write its account for every page. Uses the primary key.
 */
export async function storeForbiddenError(
  tx: Tx,
  { environmentId, id }: AccountRef,
  error: ForbiddenError,
  dedupWindowMs: number,
): Promise<boolean> {
  const changed = await execute(
    tx,
    `update integrated_account set last_forbidden_error = :error::jsonb
     where environment_id = :environmentId and id = :id and (last_forbidden_error is null
       or last_forbidden_error ->> 'resource' <> :resource or last_forbidden_error ->> 'method' <> :method
       or (last_forbidden_error ->> 'occurred_at')::timestamptz
         < :occurredAt::timestamptz - :dedupWindowMs * interval '1 millisecond')`,
    {
      error: jsonb({ ...error }),
      environmentId,
      id,
      resource: error.resource,
      method: error.method,
      occurredAt: error.occurred_at,
      dedupWindowMs,
    },
  )
  return changed > 0
}

/** When the customer has to connect an account again, and when that is announced. */
export interface ReauthorizationTimes {
  readonly dueAt: Date | null
  readonly warningAt: Date | null
}

/** The account's version (etag) stays. Uses the primary key. */
export async function storeReauthorization(
  tx: Tx,
  { environmentId, id }: AccountRef,
  { dueAt, warningAt }: ReauthorizationTimes,
): Promise<void> {
  const times = { reauthorization_due_at: dueAt, reauthorization_warning_at: warningAt }
  await tx('integrated_account').where({ environment_id: environmentId, id }).update(times)
}

/**
 * Takes accounts whose warning is due; each is taken once. Workers claim concurrently: rows that another one locks are skipped.
 * Uses integrated_account_warning.
 */
export async function claimReauthorizationWarnings(
  tx: Tx,
  { regions, limit }: { readonly regions: readonly string[] | undefined; readonly limit: number },
): Promise<readonly (AccountRef & Pick<IntegratedAccountRecord, 'status'>)[]> {
  return await query(
    tx,
    `update integrated_account account set reauthorization_warning_at = null
     from (
       select environment_id, id from integrated_account
       where reauthorization_warning_at <= now() and (:regions::text[] is null or region = any(:regions))
       order by reauthorization_warning_at limit :limit for update skip locked
     ) due
     where account.environment_id = due.environment_id and account.id = due.id
     returning account.environment_id as "environmentId", account.id, account.status`,
    { regions: regions ?? null, limit },
  )
}

/** The account may be another one at the third party from now on. Uses the primary key. */
export async function forgetExternalId(tx: Tx, { environmentId, id }: AccountRef): Promise<void> {
  await tx('integrated_account').where({ environment_id: environmentId, id }).update({ external_id: null })
}

/** Whether accounts can be called, by id: absent when there is none any more. Uses primary keys. */
export async function findEnabledAccounts(
  tx: Tx,
  accounts: readonly AccountRef[],
): Promise<ReadonlyMap<string, { readonly environmentIntegrationId: string; readonly isEnabled: boolean }>> {
  const found = await query<{
    readonly id: string
    readonly environmentIntegrationId: string
    readonly isEnabled: boolean
  }>(
    tx,
    `select account.id, installation.id as "environmentIntegrationId", installation.is_enabled as "isEnabled"
     from unnest(:environmentIds::uuid[], :ids::uuid[]) as wanted (environment_id, id)
     join integrated_account account on account.environment_id = wanted.environment_id and account.id = wanted.id
     join environment_integration installation
       on installation.environment_id = account.environment_id and installation.id = account.environment_integration_id`,
    { environmentIds: accounts.map(({ environmentId }) => environmentId), ids: accounts.map(({ id }) => id) },
  )
  return new Map(found.map(({ id, ...account }) => [id, account]))
}
