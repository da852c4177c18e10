import { type Db, execute, jsonb, query, queryOne } from '../../../foundation/database/index.ts'
import { dueInRegionsSql, REGIONS } from '../../../foundation/queue/index.ts'
import {
  type AccountRef,
  type ForbiddenError,
  INSTALLATION,
  type IntegratedAccountRecord,
  OF_ACCOUNT,
} from './integrated-account.ts'

/**
 * Stores the last 403 and returns whether it did; the account's version (etag) stays. The same error within `dedupWindowMs` is not written again, because
 * a sync without permissions would write its account for every page. Uses the primary key.
 */
export async function storeForbiddenError(
  tx: Db,
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

/** How a 401 is weighed against successes with the same credentials. */
export interface UnauthorizedWeighing {
  readonly now: Date
  /** A 401 after a contradiction of less than this ago counts only after `unauthorizedMs` without a success. */
  readonly contradictionMs: number
  readonly unauthorizedMs: number
  /** A 401 less than this after a contradiction is not written. */
  readonly dedupMs: number
}

/**
 * Records since when calls of an active account are answered with 401, and returns whether that changes its status; the
 * account's version (etag) stays. Uses the primary key.
 */
export async function markUnauthorized(
  tx: Db,
  { environmentId, id }: AccountRef,
  { now, contradictionMs, unauthorizedMs, dedupMs }: UnauthorizedWeighing,
): Promise<boolean> {
  const times = {
    now,
    contradictedAfter: agoOf(contradictionMs),
    since: agoOf(unauthorizedMs),
    writtenBefore: agoOf(dedupMs),
  }
  function agoOf(ms: number): Date {
    return new Date(now.getTime() - ms)
  }
  const found = await queryOne<{ readonly isCounted: boolean }>(
    tx,
    `with present as (
       select unauthorized_since,
         worked_again_at is null or worked_again_at <= :contradictedAfter or unauthorized_since <= :since as is_counted,
         unauthorized_since is null and (worked_again_at is null or worked_again_at <= :writtenBefore) as is_first
       from integrated_account where environment_id = :environmentId and id = :id and status = 'active'
     ), marked as (
       update integrated_account set unauthorized_since = :now from present
       where environment_id = :environmentId and id = :id and is_first
     )
     select coalesce(is_counted, false) as is_counted from present`,
    { ...times, environmentId, id },
  )
  return found?.isCounted === true
}

/**
 * Records that a call has succeeded since calls became unauthorized; returns whether it was loaded as they were still: a call
 * of the time before says nothing about new credentials. The account's version (etag) stays. Uses the primary key.
 */
export async function markWorking(
  tx: Db,
  { environmentId, id }: AccountRef,
  { unauthorizedSince, now }: { readonly unauthorizedSince: Date | undefined; readonly now: Date },
): Promise<boolean> {
  const changed = await execute(
    tx,
    `update integrated_account set worked_again_at = :now, unauthorized_since = case status when 'active' then null else unauthorized_since end
     where environment_id = :environmentId and id = :id and unauthorized_since = :unauthorizedSince`,
    { now, environmentId, id, unauthorizedSince: unauthorizedSince ?? null },
  )
  return changed > 0
}

/** How many accounts there are, by status. Reads every account. */
export async function countAccounts(tx: Db): Promise<readonly { readonly status: string; readonly count: number }[]> {
  return await query(tx, 'select status, count(*)::int as count from integrated_account group by status')
}

/** When the customer has to connect an account again, and when that is announced. */
export interface ReauthorizationTimes {
  readonly dueAt: Date | null
  readonly warningAt: Date | null
}

/** The account's version (etag) stays. Uses the primary key. */
export async function storeReauthorization(
  tx: Db,
  { environmentId, id }: AccountRef,
  { dueAt, warningAt }: ReauthorizationTimes,
): Promise<void> {
  const times = { reauthorization_due_at: dueAt, reauthorization_warning_at: warningAt }
  await tx('integrated_account').where({ environment_id: environmentId, id }).update(times)
}

const WARNINGS_DUE = dueInRegionsSql(
  {
    table: 'integrated_account',
    due: 'reauthorization_warning_at',
  },
  ['environment_id', 'id'],
)

/**
 * Takes accounts whose warning is due; each is taken once, and left out when its deletion goes on. Workers claim concurrently: rows that another one locks are skipped.
 * Uses integrated_account_warning.
 */
export async function claimReauthorizationWarnings(
  tx: Db,
  { regions, limit }: { readonly regions: readonly string[] | undefined; readonly limit: number },
): Promise<readonly (AccountRef & Pick<IntegratedAccountRecord, 'status'>)[]> {
  return await query(
    tx,
    `with due as materialized (${WARNINGS_DUE}), taken as (
       update integrated_account account set reauthorization_warning_at = null
       from due
       where account.environment_id = due.environment_id and account.id = due.id
       returning account.environment_id, account.id, account.status, account.environment_integration_id
     )
     select taken.environment_id, taken.id, taken.status from taken
     join environment_integration installation on installation.environment_id = taken.environment_id
       and installation.id = taken.environment_integration_id and not installation.is_hidden`,
    { regions: regions ?? REGIONS, limit },
  )
}

/** The account may be another one at the third party from now on. Uses the primary key. */
export async function forgetExternalId(tx: Db, { environmentId, id }: AccountRef): Promise<void> {
  await tx('integrated_account').where({ environment_id: environmentId, id }).update({ external_id: null })
}

/** Whether accounts can be called, by id: absent when there is none any more. Uses primary keys. */
export async function findEnabledAccounts(
  tx: Db,
  accounts: readonly AccountRef[],
): Promise<ReadonlyMap<string, { readonly environmentIntegrationId: string; readonly isEnabled: boolean }>> {
  const found = await query<{
    readonly id: string
    readonly environmentIntegrationId: string
    readonly isEnabled: boolean
  }>(
    tx,
    `select account.id, installation.id as environment_integration_id, installation.is_enabled
     from unnest(:environmentIds::uuid[], :ids::uuid[]) as wanted (environment_id, id)
     join integrated_account account on account.environment_id = wanted.environment_id and account.id = wanted.id
     join environment_integration installation
       on installation.environment_id = account.environment_id and installation.id = account.environment_integration_id
         and not installation.is_hidden`,
    { environmentIds: accounts.map(({ environmentId }) => environmentId), ids: accounts.map(({ id }) => id) },
  )
  return new Map(found.map(({ id, ...account }) => [id, account]))
}

/** Whose account it is, and of which integration; undefined for an unknown one. Uses primary keys. */
export async function findAccountOwner(
  tx: Db,
  { environmentId, id }: AccountRef,
): Promise<{ readonly tenantId: string; readonly integrationName: string } | undefined> {
  return await queryOne(
    tx,
    `select account.tenant_id, integration.name as integration_name
     from integrated_account account join (${INSTALLATION}) on ${OF_ACCOUNT}
     where account.environment_id = :environmentId and account.id = :id`,
    { environmentId, id },
  )
}
