import { type Db, execute, jsonb, query, queryOne } from '../../../foundation/database/index.ts'
import type { Json } from '../../../foundation/json/index.ts'
import {
  type DueSettlement,
  type DueTable,
  type Lease,
  settleDue,
  updateHeld,
} from '../../../foundation/queue/index.ts'
import { isKeptSql } from '../../accounts/sql/integrated-account.ts'
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

/** A subscription about which a request is due. */
export interface DueSubscription extends SubscriptionRef {
  readonly externalId: Json
  /** The one before it, which is yet to be deleted at the third party; null: none. */
  readonly replacedId: Json
  /** Another one is to be created, although this one has not ended. */
  readonly isReplacementDue: boolean
  readonly expiresAt: Date | null
  /** How often it was made due until the claim. */
  readonly requested: number
  /** Since the last success, this one included. */
  readonly attempts: number
  readonly failedAt: Date | null
}

/** Requests about subscriptions. Uses webhook_subscription_due. */
export const SUBSCRIPTIONS: DueTable<DueSubscription> = {
  table: 'webhook_subscription',
  columns: {
    environmentId: 'environment_id',
    integratedAccountId: 'integrated_account_id',
    event: 'event',
    externalId: 'external_id',
    replacedId: 'replaced_id',
    isReplacementDue: 'is_replacement_due',
    expiresAt: 'expires_at',
    requested: 'requested',
    attempts: 'attempts',
    failedAt: 'failed_at',
  },
  key: ['environmentId', 'integratedAccountId', 'event'],
  due: 'due_at',
  leaseId: 'lease_id',
  condition: isKeptSql('webhook_subscription', 'integrated_account_id'),
  onClaim: `updated_at = now(), status = case when item.external_id is null then 'creating' else 'renewing' end`,
}

const KEY = 'environment_id = :environmentId and integrated_account_id = :integratedAccountId'
const COLUMNS = `environment_id, integrated_account_id, event, status, external_id, replaced_id, expires_at,
  case when lease_id is null then due_at end as next_attempt_at, error, failed_at`
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

/** A subscription as the third party has it now. */
export interface SettledSubscription {
  readonly externalId: Json
  /** The one that it replaces, to be deleted at the third party; null: none. */
  readonly replacedId: Json
  readonly expiresAt: Date | undefined
  /** Until the renewal; `undefined`: never. */
  readonly delayMs: number | undefined
}

/** A success. */
export function subscribed({ externalId, replacedId, expiresAt, delayMs }: SettledSubscription): DueSettlement {
  const set = `status = 'active', external_id = :newId::jsonb, replaced_id = :oldId::jsonb,
    is_replacement_due = ${IS_REPLACEMENT_DUE}, expires_at = :endsAt, error = '', failed_at = null, updated_at = now()`
  const oldId = replacedId === null ? null : jsonb(replacedId)
  const values = { newId: jsonb(externalId), oldId, endsAt: expiresAt ?? null }
  return { delayMs: delayMs ?? null, attempts: 0, set, values }
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

/** A failure. */
export function failedRequest(
  { attempts }: DueSubscription,
  { delayMs, isCounted, isFailed, error, isGone }: FailedRequest,
): DueSettlement {
  const set = `error = :error, updated_at = now(),
    status = case when :isFailed or failed_at is not null then 'failed' when :isGone then 'creating' else status end,
    failed_at = coalesce(failed_at, case when :isFailed then now() end),
    external_id = case when :isGone then null else external_id end,
    expires_at = case when :isGone then null else expires_at end`
  return { delayMs, attempts: isCounted ? attempts : attempts - 1, set, values: { error, isFailed, isGone } }
}

/** Shows that a subscription is being deleted. */
export async function markDeleting(tx: Db, lease: Lease<DueSubscription>): Promise<void> {
  await updateHeld(tx, SUBSCRIPTIONS, lease, `status = 'deleting'`)
}

/** The account has no subscription, until the condition is looked at again. */
export function unsubscribed(delayMs: number): DueSettlement {
  const set = `status = 'none', external_id = null, replaced_id = null, expires_at = null, is_replacement_due = false,
    error = '', failed_at = null, updated_at = now()`
  return { delayMs, attempts: 0, set }
}

/** Deletes a subscription that the definition no longer has; one that was asked for since is created anew. */
export async function deleteSubscription(tx: Db, lease: Lease<DueSubscription>): Promise<void> {
  const isDeleted = await settleDue(tx, SUBSCRIPTIONS, lease, { isDone: true })
  if (!isDeleted) await settleDue(tx, SUBSCRIPTIONS, lease, unsubscribed(0))
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
