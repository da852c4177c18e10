import { DAY_MS, lowestIdAt, MINUTE_MS } from '../../foundation/base/index.ts'
import type { Database } from '../../foundation/database/index.ts'
import type { HttpClient } from '../../foundation/egress/index.ts'
import type { Lease, WorkError } from '../../foundation/queue/index.ts'
import { Redactor, SECRET_MASK } from '../../foundation/redaction/index.ts'
import { takeRequest } from '../../platform/limits/index.ts'
import type { EventRecord } from '../../platform/outbox/index.ts'
import { type DeliveryExchange, sendDeliveryRequest } from './attempt.ts'
import type { DeliverySettlement, DiscardReason, QueuedDelivery } from './delivery-queue.ts'
import { type LoadedWebhook, type LoadWebhookDeps, withCurrentSecrets } from './load-webhooks.ts'
import { buildDeliveryRequest, type DeliveryRequest } from './request.ts'
import type { NewAttempt } from './sql/delivery.ts'

/** What sending one delivery takes. */
export interface SendDeps extends LoadWebhookDeps {
  readonly http: Pick<HttpClient, 'stream'>
  readonly database: Pick<Database, 'pool'>
}

/** What a delivery is sent from; undefined: it no longer exists. */
export interface DeliveryParts {
  /** `unreadable`: its secrets cannot be decrypted at the moment. */
  readonly webhook: LoadedWebhook | 'unreadable' | undefined
  readonly event: EventRecord | undefined
}

/** The receiver asks for no further requests. */
const GONE_STATUS = 410
/** Until a delivery is tried again whose webhook has secrets that cannot be decrypted: an operator has to add a key. */
const UNREADABLE_PAUSE_MS = MINUTE_MS
/** After this it fails, as one whose receiver never accepts it: pending deliveries keep the history of their day. */
const UNREADABLE_MS_MAX = 3 * DAY_MS

/**
 * Makes one attempt of a claimed delivery. Any response but 2xx and 410 is followed by another attempt, and so is none.
 *
 * @throws the signal's reason when it aborts
 */
export async function sendDelivery(
  deps: SendDeps,
  delivery: Lease<QueuedDelivery>,
  { webhook, event }: DeliveryParts,
  signal: AbortSignal,
): Promise<DeliverySettlement> {
  if (webhook === undefined) return discarded(delivery, 'webhook_deleted')
  if (webhook === 'unreadable') return unreadable(delivery, deps.clock.now())
  if (webhook.state === 'disabled') return discarded(delivery, 'webhook_disabled')
  if (webhook.state === 'paused') return discarded(delivery, 'webhook_paused')
  if (event === undefined) return discarded(delivery, 'event_deleted')
  const waitMs = await takeFromRateLimit(deps, webhook)
  if (waitMs !== undefined) return { delivery, outcome: { kind: 'rate_limited', afterMs: waitMs } }
  const signer = await withCurrentSecrets(deps, deps.database.pool, webhook)
  const timestampSeconds = Math.floor(deps.clock.now().getTime() / 1000)
  const isTest = delivery.trigger === 'test'
  const request = buildDeliveryRequest(signer, { ...event, isTest }, timestampSeconds)
  const exchange = await sendDeliveryRequest(deps, signer, request, signal)
  return { delivery, ...outcomeOf(exchange), attempt: attemptRecord(delivery, signer, request, exchange) }
}

function unreadable(delivery: Lease<QueuedDelivery>, now: Date): DeliverySettlement {
  const error: WorkError = { reason: 'SECRET_UNREADABLE', message: 'the secrets of the webhook cannot be decrypted' }
  const isOver = delivery.id < lowestIdAt(new Date(now.getTime() - UNREADABLE_MS_MAX))
  if (isOver) return { delivery, outcome: { kind: 'failed', error }, errorClass: 'webhook_unreadable' }
  return { delivery, outcome: { kind: 'rate_limited', afterMs: UNREADABLE_PAUSE_MS, error } }
}

function discarded(delivery: Lease<QueuedDelivery>, discardReason: DiscardReason): DeliverySettlement {
  return { delivery, outcome: { kind: 'stopped' }, discardReason }
}

async function takeFromRateLimit(
  { database }: SendDeps,
  { environmentId, webhookId, rateLimit }: LoadedWebhook,
): Promise<number | undefined> {
  if (rateLimit === null) return undefined
  return await takeRequest(database.pool, {
    environmentId,
    subject: `webhook:${webhookId}`,
    limit: rateLimit.requests,
    windowMs: rateLimit.windowSeconds * 1_000,
  })
}

function outcomeOf({ attempt }: DeliveryExchange): Pick<DeliverySettlement, 'outcome'> {
  switch (attempt.kind) {
    case 'accepted':
      return { outcome: { kind: 'completed' } }
    case 'rejected': {
      const error: WorkError = {
        reason: 'WEBHOOK_REFUSED',
        message: `the webhook answered with status ${attempt.status}`,
      }
      if (attempt.status === GONE_STATUS) return { outcome: { kind: 'failed', error } }
      const wait = attempt.retryAfterMs === undefined ? {} : { afterMs: attempt.retryAfterMs }
      return { outcome: { kind: 'retry', error, ...wait } }
    }
    case 'no_response':
      return { outcome: { kind: 'retry', error: { reason: attempt.reason, message: attempt.message } } }
  }
}

function attemptRecord(
  { id, environmentId, attempt: n, availableAt }: Lease<QueuedDelivery>,
  webhook: LoadedWebhook,
  request: DeliveryRequest,
  exchange: DeliveryExchange,
): NewAttempt {
  const { attempt, startedAt, totalMs, timings, response, errorClass } = exchange
  const redactor = redactorOf(webhook)
  return {
    environmentId,
    deliveryId: id,
    n,
    scheduledAt: availableAt,
    startedAt,
    dnsMs: timings.dnsMs ?? null,
    connectMs: timings.connectMs ?? null,
    tlsMs: timings.tlsMs ?? null,
    firstByteMs: timings.firstByteMs ?? null,
    totalMs,
    status: response?.status ?? null,
    errorClass: errorClass ?? null,
    errorMessage: attempt.kind === 'no_response' ? attempt.message : null,
    remoteAddress: timings.remoteAddress ?? null,
    requestHeaders: Object.entries(request.headers).map(([name, value]) =>
      name in webhook.headers ? [name, SECRET_MASK] : [name, value],
    ),
    responseHeaders: response === undefined ? null : Object.entries(redactor.redactMap(response.headers)),
    // PostgreSQL stores no NUL in texts.
    responseBody: response === undefined ? null : redactor.redactText(response.text).replaceAll('\0', '\ufffd'),
  }
}

/** By webhook, which is cached: to index secrets costs more than an attempt. */
const REDACTORS = new WeakMap<LoadedWebhook, Redactor>()

/** Masks the values of custom headers and the signing secrets, which a receiver may return. */
function redactorOf(webhook: LoadedWebhook): Redactor {
  const redactor =
    REDACTORS.get(webhook) ??
    new Redactor(() => [
      ...Object.values(webhook.headers),
      ...webhook.secrets.flatMap((secret) => [secret, secret.replace(/^whsec_/, '')]),
    ])
  REDACTORS.set(webhook, redactor)
  return redactor
}
