import { type Json, REGIONS } from '../../base/index.ts'
import { type Db, dueInRegionsSql, execute, jsonb, query, queryOne } from '../../database/index.ts'
import { ACTIVITY_COLUMNS, type ActivityRecord } from './activity.ts'

/** What a subscription is doing. `none`: the definition orders it under a condition, which does not hold. */
type SubscriptionStatus = 'none' | 'creating' | 'active' | 'renewing' | 'failed' | 'deleting'

/** Names a subscription of an account. */
export interface SubscriptionRef {
  readonly environmentId: string
  readonly integratedAccountId: string
  /** Empty: one subscription is for all events. */
  readonly event: string
}

/** A subscription as stored. */
export interface SubscriptionRecord extends SubscriptionRef {
  readonly status: SubscriptionStatus
  /** What the third party calls it; null: none was created. */
  readonly externalId: Json
  readonly expiresAt: Date | null
  /** Null while a request is under way, or when none is due. */
  readonly nextAttemptAt: Date | null
  /** Of the last request; empty after a success. */
  readonly error: string
  /** Since when no request succeeds; null: the last one did. */
  readonly failedAt: Date | null
}

/**
 * A lease on a subscription: its holder alone makes requests for it. It ends when it expires, or when another worker claims
 * the subscription.
 */
export interface SubscriptionLease extends SubscriptionRef {
  readonly leaseId: string
  readonly externalId: Json
  /** The one before it, which is yet to be deleted at the third party; null: none. */
  readonly replacedId: Json
  /** Another one is to be created, although this one has not ended. */
  readonly isReplacementDue: boolean
  readonly expiresAt: Date | null
  /** How often it was made due until the claim: when it has been since, this lease ends with another request due at once. */
  readonly requested: number
  /** Since the last success, this one included. */
  readonly attempts: number
  readonly failedAt: Date | null
}

const KEY = 'environment_id = :environmentId and integrated_account_id = :integratedAccountId'
const COLUMNS = `environment_id as "environmentId", integrated_account_id as "integratedAccountId", event, status,
  external_id as "externalId", replaced_id as "replacedId", expires_at as "expiresAt",
  case when lease_id is null then due_at end as "nextAttemptAt", error, failed_at as "failedAt"`
/** The condition of every write of a holder. */
const UNDER_LEASE = `${KEY} and event = :event and lease_id = :leaseId`
/** SQL: when the next request is due after the holder's, in milliseconds from now; at once when it was asked for since. */
const NEXT_DUE_AT = `case when requested = :requested then now() + :delayMs * interval '1 millisecond'
  else date_trunc('milliseconds', now()) end`
/** SQL: whether the holder's request came before one was asked for that creates another subscription. */
const IS_REPLACEMENT_DUE = 'is_replacement_due and requested <> :requested'

/**
 * Makes the subscriptions of an account due: those that are missing are created; of the others those without a way of renewal
 * are replaced, the rest is renewed. Work under way continues, and is followed by a request that begins after this one. Times are cut to the milliseconds of the column: rounded, they
 * could be in the future. Uses the primary key.
 */
export async function scheduleSubscriptions(
  tx: Db,
  account: { readonly environmentId: string; readonly id: string; readonly region: string },
  { events, isReplacementDue }: { readonly events: readonly string[]; readonly isReplacementDue: boolean },
): Promise<void> {
  await execute(
    tx,
    `insert into webhook_subscription as present
       (environment_id, integrated_account_id, event, region, status, due_at)
     select :environmentId, :id, event, :region, 'creating', date_trunc('milliseconds', now()) from unnest(:events::text[]) as wanted (event)
     on conflict (environment_id, integrated_account_id, event) do update set
       attempts = 0, updated_at = now(), requested = present.requested + 1,
       due_at = case when present.lease_id is null then date_trunc('milliseconds', now()) else present.due_at end,
       is_replacement_due = present.is_replacement_due
         or (:isReplacementDue and (present.external_id is not null or present.lease_id is not null))`,
    { environmentId: account.environmentId, id: account.id, region: account.region, events, isReplacementDue },
  )
}

const DUE = dueInRegionsSql({
  table: 'webhook_subscription',
  key: ['environment_id', 'integrated_account_id', 'event'],
  due: 'due_at',
})

/**
 * Claims the subscription that has been due the longest. Workers claim concurrently: rows that another one locks are skipped.
 * Uses webhook_subscription_due.
 */
export async function claimSubscription(
  tx: Db,
  claim: { readonly leaseId: string; readonly leaseMs: number; readonly regions: readonly string[] | undefined },
): Promise<SubscriptionLease | undefined> {
  return await queryOne(
    tx,
    `with due as materialized (${DUE})
     update webhook_subscription subscription set lease_id = :leaseId, attempts = subscription.attempts + 1,
       due_at = now() + :leaseMs * interval '1 millisecond', updated_at = now(),
       status = case when subscription.external_id is null then 'creating' else 'renewing' end
     from due
     where subscription.environment_id = due.environment_id and subscription.event = due.event
       and subscription.integrated_account_id = due.integrated_account_id
     returning subscription.environment_id as "environmentId",
       subscription.integrated_account_id as "integratedAccountId", subscription.event, subscription.lease_id as "leaseId",
       subscription.external_id as "externalId", subscription.replaced_id as "replacedId",
       subscription.is_replacement_due as "isReplacementDue", subscription.expires_at as "expiresAt",
       subscription.requested, subscription.attempts, subscription.failed_at as "failedAt"`,
    { leaseId: claim.leaseId, leaseMs: claim.leaseMs, regions: claim.regions ?? REGIONS, limit: 1 },
  )
}

/** A subscription as the third party has it now. */
export interface SettledSubscription {
  readonly externalId: Json
  /** The one that it replaces, to be deleted at the third party; null: none. */
  readonly replacedId: Json
  readonly expiresAt: Date | undefined
  /** Until the renewal; `undefined`: never. */
  readonly delayMs: number | undefined
}

/** Stores a success and releases the lease; returns whether it was held. Uses the primary key. */
export async function storeSubscription(
  tx: Db,
  { environmentId, integratedAccountId, event, leaseId, requested }: SubscriptionLease,
  { externalId, replacedId, expiresAt, delayMs }: SettledSubscription,
): Promise<boolean> {
  const stored = await execute(
    tx,
    `update webhook_subscription set status = 'active', external_id = :externalId::jsonb, replaced_id = :replacedId::jsonb,
       is_replacement_due = ${IS_REPLACEMENT_DUE}, expires_at = :expiresAt, due_at = ${NEXT_DUE_AT},
       lease_id = null, attempts = 0, error = '', failed_at = null, updated_at = now() where ${UNDER_LEASE}`,
    {
      environmentId,
      integratedAccountId,
      event,
      leaseId,
      requested,
      externalId: jsonb(externalId),
      replacedId: replacedId === null ? null : jsonb(replacedId),
      expiresAt: expiresAt ?? null,
      delayMs: delayMs ?? null,
    },
  )
  return stored > 0
}

/** A request that did not succeed. */
export interface FailedRequest {
  /** Until the next one. */
  readonly delayMs: number
  /** Whether the attempt counts. */
  readonly isCounted: boolean
  /** Whether the subscription counts as failed from now on. */
  readonly isFailed: boolean
  /** Secrets are redacted. */
  readonly error: string
  /** The third party no longer knows it: another one is created. */
  readonly isGone: boolean
}

/** Stores a failure and releases the lease; returns whether it was held. Uses the primary key. */
export async function storeFailedRequest(
  tx: Db,
  { environmentId, integratedAccountId, event, leaseId, requested, attempts }: SubscriptionLease,
  { delayMs, isCounted, isFailed, error, isGone }: FailedRequest,
): Promise<boolean> {
  const stored = await execute(
    tx,
    `update webhook_subscription set lease_id = null, error = :error, updated_at = now(),
       attempts = case when requested = :requested then :attempts else 0 end, due_at = date_trunc('milliseconds', ${NEXT_DUE_AT}),
       status = case when :isFailed or failed_at is not null then 'failed' when :isGone then 'creating' else status end,
       failed_at = coalesce(failed_at, case when :isFailed then now() end),
       external_id = case when :isGone then null else external_id end,
       expires_at = case when :isGone then null else expires_at end
     where ${UNDER_LEASE}`,
    {
      environmentId,
      integratedAccountId,
      event,
      leaseId,
      requested,
      attempts: isCounted ? attempts : attempts - 1,
      delayMs,
      isFailed,
      error,
      isGone,
    },
  )
  return stored > 0
}

/** Shows that a subscription is being deleted. Uses the primary key. */
export async function markDeleting(
  tx: Db,
  { environmentId, integratedAccountId, event, leaseId }: SubscriptionLease,
): Promise<void> {
  const sql = `update webhook_subscription set status = 'deleting' where ${UNDER_LEASE}`
  await execute(tx, sql, { environmentId, integratedAccountId, event, leaseId })
}

/** Stores that the account has no subscription, until the condition is looked at again, and releases the lease. Uses the primary key. */
export async function storeNone(
  tx: Db,
  { environmentId, integratedAccountId, event, leaseId, requested }: SubscriptionLease,
  delayMs: number,
): Promise<void> {
  await execute(
    tx,
    `update webhook_subscription set status = 'none', external_id = null, replaced_id = null, expires_at = null,
       is_replacement_due = false, due_at = ${NEXT_DUE_AT}, lease_id = null, attempts = 0,
       error = '', failed_at = null, updated_at = now() where ${UNDER_LEASE}`,
    { environmentId, integratedAccountId, event, leaseId, requested, delayMs },
  )
}

/** Deletes a subscription that the definition no longer has; one that was asked for since is created anew. Uses the primary key. */
export async function deleteSubscription(tx: Db, lease: SubscriptionLease): Promise<void> {
  const { environmentId, integratedAccountId, event, leaseId, requested } = lease
  const sql = `delete from webhook_subscription where ${UNDER_LEASE} and requested = :requested`
  const deleted = await execute(tx, sql, { environmentId, integratedAccountId, event, leaseId, requested })
  if (deleted === 0) await storeNone(tx, lease, 0)
}

/** Notes that the replaced subscription was deleted at the third party. Uses the primary key. */
export async function forgetReplaced(
  tx: Db,
  { environmentId, integratedAccountId, event }: SubscriptionRef,
  replacedId: Json,
): Promise<void> {
  await execute(
    tx,
    `update webhook_subscription set replaced_id = null
     where ${KEY} and event = :event and replaced_id = :replacedId::jsonb`,
    { environmentId, integratedAccountId, event, replacedId: jsonb(replacedId) },
  )
}

/** The subscriptions of an account by event; locked, where the caller changes what is derived from them. Uses the primary key. */
export async function listSubscriptions(
  tx: Db,
  { environmentId, id }: { readonly environmentId: string; readonly id: string },
  lock: 'none' | 'update' = 'none',
): Promise<readonly (SubscriptionRecord & { readonly replacedId: Json })[]> {
  return await query(
    tx,
    `select ${COLUMNS} from webhook_subscription where ${KEY} order by event ${lock === 'update' ? 'for update' : ''}`,
    { environmentId, integratedAccountId: id },
  )
}

/** What is known about the webhooks of an account. */
export interface WebhookOverview {
  readonly subscriptions: readonly SubscriptionRecord[]
  /** Absent: the third party has sent nothing. */
  readonly activity: ActivityRecord | undefined
}

type OverviewRow = { readonly [Column in keyof SubscriptionRecord]: SubscriptionRecord[Column] | null } & {
  readonly [Column in keyof ActivityRecord]: ActivityRecord[Column] | null
}

/** One statement, which every answer with an account reads. Uses primary keys. */
export async function readWebhookOverview(
  tx: Db,
  { environmentId, id }: { readonly environmentId: string; readonly id: string },
): Promise<WebhookOverview> {
  const rows = await query<OverviewRow>(
    tx,
    `select activity.*, subscription.* from (select) as account
       left join (select ${ACTIVITY_COLUMNS} from webhook_activity where ${KEY}) activity on true
       left join (select ${COLUMNS} from webhook_subscription where ${KEY}) subscription on true
     order by event`,
    { environmentId, integratedAccountId: id },
  )
  const [first] = rows
  return {
    subscriptions: rows.filter((row): row is OverviewRow & SubscriptionRecord => row.event !== null),
    activity: first === undefined || !hasActivity(first) ? undefined : first,
  }
}

function hasActivity(row: OverviewRow): row is OverviewRow & ActivityRecord {
  return row.lastInboundAt !== null
}

/**
 * Whether a request that creates or renews a subscription of the account is under way: the third party may be verifying the
 * address that it was just given. Uses the primary key.
 */
export async function isSubscribing(
  tx: Db,
  { environmentId, id }: { readonly environmentId: string; readonly id: string },
): Promise<boolean> {
  const sql = `select from webhook_subscription
    where ${KEY} and lease_id is not null and due_at > now() and status in ('creating', 'renewing') limit 1`
  return (await queryOne(tx, sql, { environmentId, integratedAccountId: id })) !== undefined
}
