import { type Db, execute, query, queryOne, rowSet } from '../../../foundation/database/index.ts'
import { ANNOUNCED_AFTER_DAYS, DISABLED_AFTER_DAYS, type WebhookDisabledReason } from '../state.ts'
import type { WebhookRef } from './load-webhooks.ts'

/** A webhook whose attempts have only failed. */
export interface FailureRow extends WebhookRef {
  readonly failingSince: Date
  /** Failed attempts since then. */
  readonly attempts: number
  /** Whether it has failed for long enough to be turned off. */
  readonly isDue: boolean
  /** Whether it has failed for long enough to be announced, and was not. */
  readonly isAnnouncementDue: boolean
}

/** Failed attempts of one webhook. */
export interface FailedAttempts extends WebhookRef {
  readonly attempts: number
}

const WEBHOOKS = rowSet('environment_id uuid, webhook_id uuid')
const FAILED = rowSet('environment_id uuid, webhook_id uuid, attempts integer')

/**
 * Forgets the failures of the webhooks; returns those of them whose failing was announced. Writes nothing for a webhook that
 * has none. Uses the primary key.
 */
export async function deleteFailures(tx: Db, refs: readonly WebhookRef[]): Promise<readonly WebhookRef[]> {
  return await query(
    tx,
    `with removed as (
       delete from webhook_failure failure using ${WEBHOOKS.rows}
       where failure.environment_id = v.environment_id and failure.webhook_id = v.webhook_id
       returning failure.environment_id, failure.webhook_id, failure.is_announced
     )
     select environment_id, webhook_id from removed where is_announced`,
    WEBHOOKS.of(refs),
  )
}

/**
 * Counts failed attempts of webhooks that are active, and returns how long these have failed. The row of each webhook is locked
 * against deletion, in the order of ids. Uses primary keys.
 */
export async function upsertFailures(tx: Db, failed: readonly FailedAttempts[]): Promise<readonly FailureRow[]> {
  return await query(
    tx,
    `insert into webhook_failure as failure (environment_id, webhook_id, attempts)
     select webhook.environment_id, webhook.id, v.attempts from ${FAILED.rows}
     join webhook on webhook.environment_id = v.environment_id and webhook.id = v.webhook_id and webhook.is_active
     order by webhook.environment_id, webhook.id
     for key share of webhook
     on conflict (environment_id, webhook_id) do update set attempts = failure.attempts + excluded.attempts,
       failing_since = case when failure.attempts = 0 then now() else failure.failing_since end
     returning environment_id, webhook_id, failing_since, attempts,
       failing_since <= now() - :disabledAfter::float8 * interval '1 day' as is_due,
       not is_failing_announced and failing_since <= now() - :announcedAfter::float8 * interval '1 day' as is_announcement_due`,
    { ...FAILED.of(failed), disabledAfter: DISABLED_AFTER_DAYS, announcedAfter: ANNOUNCED_AFTER_DAYS },
  )
}

/**
 * Marks that the failing of a webhook was announced, or that it was turned off: its next success is a recovery. Uses the primary key.
 */
export async function markFailureAnnounced(
  tx: Db,
  { environmentId, webhookId }: WebhookRef,
  event: 'failing' | 'disabled',
): Promise<void> {
  await tx('webhook_failure')
    .where({ environment_id: environmentId, webhook_id: webhookId })
    .update({ is_announced: true, ...(event === 'failing' ? { is_failing_announced: true } : {}) })
}

/** Turns a webhook off; returns whether it was on, of several calls one. Uses the primary key. */
export async function disableWebhookRow(tx: Db, ref: WebhookRef, reason: WebhookDisabledReason): Promise<boolean> {
  const { environmentId, webhookId } = ref
  const disabled = await queryOne(
    tx,
    `update webhook set is_active = false, disabled_reason = :reason, updated_at = now(), version = version + 1
     where environment_id = :environmentId and id = :webhookId and is_active returning id`,
    { environmentId, webhookId, reason },
  )
  return disabled !== undefined
}

/**
 * Forgets how often a webhook failed, but not that this was announced: its next success is a recovery. Further failing is
 * announced again. Uses the primary key.
 */
export async function resetFailure(tx: Db, { environmentId, webhookId }: WebhookRef): Promise<void> {
  await execute(
    tx,
    `update webhook_failure set attempts = 0, is_failing_announced = false
     where environment_id = :environmentId and webhook_id = :webhookId`,
    { environmentId, webhookId },
  )
}
