import type { Db, Tx } from '../../foundation/database/index.ts'
import { appendEvents, type EventType, payloadOf } from '../../platform/outbox/index.ts'
import {
  deleteFailures,
  disableWebhookRow,
  type FailedAttempts,
  type FailureRow,
  markFailureAnnounced,
  upsertFailures,
} from './sql/failure.ts'
import type { WebhookRef } from './sql/load-webhooks.ts'
import type { WebhookDisabledReason } from './state.ts'

/** The outcome of one attempt, as far as the health of its webhook is concerned. */
export interface WebhookOutcome extends WebhookRef {
  readonly isAccepted: boolean
  /** Absent when there was no response. */
  readonly status?: number | undefined
  /** Whether a delivery that failed gets no further attempt. */
  readonly isExhausted: boolean
}

/** The receiver asks for no further requests. */
const GONE_STATUS = 410

/**
 * Records how attempts ended on the health of their webhooks, and the events `webhook:failing`, `webhook:disabled` and
 * `webhook:recovered` that follow. Call it in the transaction that settles the attempts.
 *
 * - A success forgets all failures; of several outcomes of one webhook in a call a success counts alone.
 * - 410 turns the webhook off at once, with reason `gone`.
 * - A webhook whose attempts have only failed for `DISABLED_AFTER_DAYS` is turned off when a delivery has used its last attempt,
 *   with reason `failing`; `webhook:failing` is recorded once at half of that time.
 *
 * For healthy webhooks it is one statement that writes nothing.
 */
export async function recordWebhookOutcomes(tx: Tx, outcomes: readonly WebhookOutcome[]): Promise<void> {
  const byWebhook = Map.groupBy(outcomes, ({ environmentId, webhookId }) => `${environmentId}/${webhookId}`)
  const groups = [...byWebhook.entries()].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, group]) => group)
  const gone = groups.filter((group) => group.some(({ status }) => status === GONE_STATUS))
  const accepted = groups.filter((group) => !gone.includes(group) && group.some(({ isAccepted }) => isAccepted))
  const failed = groups.filter((group) => !accepted.includes(group))
  await recordSuccesses(tx, accepted.flatMap(refOf))
  const failures = await recordFailures(tx, failed)
  for (const group of failed) {
    const [ref] = refOf(group)
    if (ref === undefined) continue
    const failure = failures.get(ref.webhookId)
    const isExhausted = group.some((outcome) => outcome.isExhausted)
    if (gone.includes(group)) await disable(tx, ref, 'gone', failure)
    else if (failure?.isDue === true && isExhausted) await disable(tx, ref, 'failing', failure)
    else if (failure?.isAnnouncementDue === true) await announceFailing(tx, failure)
  }
}

function refOf([first]: readonly WebhookOutcome[]): readonly WebhookRef[] {
  return first === undefined ? [] : [{ environmentId: first.environmentId, webhookId: first.webhookId }]
}

async function recordSuccesses(tx: Tx, refs: readonly WebhookRef[]): Promise<void> {
  if (refs.length === 0) return
  const recovered = await deleteFailures(tx, refs)
  await appendEvents(
    tx,
    recovered.map((ref) => webhookEvent('webhook:recovered', ref)),
  )
}

async function recordFailures(
  tx: Db,
  failed: readonly (readonly WebhookOutcome[])[],
): Promise<ReadonlyMap<string, FailureRow>> {
  if (failed.length === 0) return new Map()
  const attempts = failed.flatMap((group): FailedAttempts[] =>
    refOf(group).map((ref) => ({ ...ref, attempts: group.length })),
  )
  return new Map((await upsertFailures(tx, attempts)).map((row) => [row.webhookId, row]))
}

async function disable(tx: Tx, ref: WebhookRef, reason: WebhookDisabledReason, failure: FailureRow | undefined) {
  if (!(await disableWebhookRow(tx, ref, reason))) return
  await markFailureAnnounced(tx, ref, 'disabled')
  await appendEvents(tx, [webhookEvent('webhook:disabled', ref, failure, reason)])
}

async function announceFailing(tx: Tx, failure: FailureRow): Promise<void> {
  await markFailureAnnounced(tx, failure, 'failing')
  await appendEvents(tx, [webhookEvent('webhook:failing', failure, failure)])
}

/** The URL is not part of the event: it may contain a secret. */
const webhookPayload = payloadOf('WebhookEventPayload')

function webhookEvent(
  type: EventType,
  { environmentId, webhookId }: WebhookRef,
  failure?: FailureRow,
  reason?: WebhookDisabledReason,
) {
  const payload = webhookPayload({
    id: webhookId,
    reason,
    failingSince: failure?.failingSince,
    failedAttempts: failure?.attempts,
  })
  return { environmentId, type, subjectId: webhookId, payload }
}
