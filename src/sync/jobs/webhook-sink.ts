import { assertNever } from '../../foundation/base/index.ts'
import { isTransientStatus } from '../../foundation/egress/index.ts'
import type { Json, JsonObject } from '../../foundation/json/index.ts'
import { payloadOf } from '../../platform/outbox/index.ts'
import {
  type DeliverDeps,
  type DeliveryAttempt,
  type DeliveryResult,
  deliver,
  EVENT_BYTES_DEFAULT,
  encodeEvent,
  encodeEventWithList,
  type OutboundEvent,
  type OutboundMessage,
  type WebhookTarget,
} from '../../webhooks/outbound/index.ts'
import type { RunError } from '../runs/run.ts'
import { type RunPayloadFields, runPayload } from '../runs/run-payload.ts'
import type { Sink, SinkPage, SinkResult } from './sink.ts'

/** The fields of a run in the events that it sends itself. */
export interface WebhookRunFields extends RunPayloadFields {
  /** Start of the first attempt. */
  readonly startedAt: Date
}

/** Status of a receiver that declines a run, in response to `started`. */
const DECLINED_STATUS = 400
/** Status of a receiver that is permanently gone. */
const GONE_STATUS = 410
/** Status of a receiver, or of a proxy before it, that takes no request of this size. */
const TOO_LARGE_STATUS = 413
/** Reason on the run when the receiver responds with another status than 2xx. */
const REJECTED_REASON = 'WEBHOOK_REFUSED'

type RejectedDelivery = Extract<DeliveryAttempt, { kind: 'rejected' }>

/**
 * Delivers a run as signed events: `sync_job_run:started`, then `:record` and `:record_error` in order, then `:completed`
 * or `:failed`. Each waits for a 2xx before the next is sent.
 *
 * Event ids derive from run and sequence: receivers deduplicate by them. A repeated start or end is identical, `created_at`
 * included; repeated records are read again. A receiver that does not respond, or with a transient status, is `unavailable`;
 * any other status ends the attempt with `retry`; 410 fails the run; 400 to `started` stops it. Records of an event that is
 * answered with 413 are sent again in events of half the size, and so are those after it on the page; the run fails at an event
 * of one record.
 *
 * @param findSecrets as `deliver`: a run may last longer than the secrets that it began with
 */
export function createWebhookSink(
  deps: DeliverDeps,
  target: WebhookTarget,
  run: WebhookRunFields,
  signal: AbortSignal,
  findSecrets?: () => Promise<readonly string[]>,
): Required<Sink> {
  const send = (message: OutboundMessage) => deliver(deps, target, message, signal, findSecrets)
  const event = (
    name: string,
    suffix: string | number,
    payload: JsonObject,
    createdAt = deps.clock.now(),
  ): OutboundEvent => ({ id: `evt_${run.id}_${suffix}`, event: `sync_job_run:${name}`, payload, createdAt })

  return {
    async started() {
      const payload = runPayload(run, 'running', [], null)
      const delivery = await send(encodeEvent(target, event('started', 'started', payload, run.startedAt)))
      const isDeclined = delivery.kind === 'rejected' && delivery.status === DECLINED_STATUS
      return isDeclined ? { kind: 'stopped' } : toSinkResult(delivery, 0)
    },
    async page(page) {
      const { records } = page.page
      let bytesMax = target.maxEventBytes - HEAD_BYTES_MAX
      let [sequence, start] = [page.sequence, 0]
      do {
        const batch = takeEvent(records, start, bytesMax)
        const payload = recordPayload(run, page, sequence, batch.isLast)
        const outbound = event('record', eventSuffix(sequence, bytesMax), payload)
        const delivery = await send(encodeEventWithList(target, outbound, 'records', batch.texts))
        if (isTooLarge(delivery)) {
          if (batch.texts.length < 2) return tooLargeResult(batch)
          bytesMax = Math.floor(batch.bytes / 2)
          continue
        }
        if (delivery.kind !== 'accepted') return toSinkResult(delivery, 0)
        start += batch.texts.length
        sequence += 1
      } while (start < records.length)
      return { kind: 'accepted', sequences: sequence - page.sequence }
    },
    async listingError(problem) {
      const payload = recordErrorPayload({ ...run, ...problem, syncJobRunId: run.id })
      return toSinkResult(await send(encodeEvent(target, event('record_error', problem.sequence, payload))), 1)
    },
    async ended({ status, error, attempt, decidedAt }, stats) {
      const payload = runPayload({ ...run, attempt }, status, stats, error)
      const at = new Date(decidedAt)
      if (status === 'failed')
        return toSinkResult(await send(encodeEvent(target, event('failed', `failed_${attempt}`, payload, at))), 0)
      const completed = { ...payload, complete: status === 'completed' }
      return toSinkResult(await send(encodeEvent(target, event('completed', 'completed', completed, at))), 0)
    },
  }
}

function toSinkResult(delivery: DeliveryResult, sequences: number): SinkResult {
  const attempts = `after ${delivery.attempts} ${delivery.attempts === 1 ? 'attempt' : 'attempts'}`
  switch (delivery.kind) {
    case 'accepted':
      return { kind: 'accepted', sequences }
    case 'no_response': {
      const error = { reason: delivery.reason, message: `the webhook did not answer ${attempts}: ${delivery.message}` }
      return delivery.reason === 'EGRESS_BLOCKED' ? { kind: 'failed', error } : { kind: 'unavailable', error }
    }
    case 'rejected': {
      const error = {
        reason: REJECTED_REASON,
        message: `the webhook answered with status ${delivery.status} ${attempts}`,
      }
      return rejectedResult(delivery, error)
    }
    default:
      return assertNever(delivery)
  }
}

function isTooLarge(delivery: DeliveryResult): boolean {
  return delivery.kind === 'rejected' && delivery.status === TOO_LARGE_STATUS
}

function tooLargeResult({ bytes }: EventBatch): SinkResult {
  const what = `the webhook answered with status ${TOO_LARGE_STATUS} to an event of one record, of ${bytes} bytes`
  const message = `${what}: let its server take larger requests, or have the definition leave fields out`
  return { kind: 'failed', error: { reason: REJECTED_REASON, message } }
}

/** Tells apart the events of a page that is sent again after another size was chosen, so that none is taken for a repeated one. */
function eventSuffix(sequence: number, bytesMax: number): string | number {
  return bytesMax === EVENT_BYTES_DEFAULT - HEAD_BYTES_MAX ? sequence : `${sequence}_${bytesMax}`
}

function rejectedResult({ status, retryAfterMs }: RejectedDelivery, error: RunError): SinkResult {
  if (status === GONE_STATUS) return { kind: 'failed', error }
  const wait = retryAfterMs === undefined ? {} : { afterMs: retryAfterMs }
  return isTransientStatus(status) ? { kind: 'unavailable', error, ...wait } : { kind: 'retry', error, ...wait }
}

function recordPayload(run: WebhookRunFields, page: SinkPage, sequence: number, isLast: boolean): JsonObject {
  return pagePayload({
    ...run,
    syncJobRunId: run.id,
    resource: page.resource,
    sequence,
    hasMore: page.page.state !== null || !isLast,
    errors: isLast && page.errors.length > 0 ? page.errors : undefined,
  })
}

/** The records are added as texts. */
const pagePayload = payloadOf('SyncJobRunRecordEventPayload', ['records'])
const recordErrorPayload = payloadOf('SyncJobRunRecordErrorEventPayload')

/** Records per event. */
const BATCH_RECORDS_MAX = 500
/** The body of an event without its records is below this. */
const HEAD_BYTES_MAX = 4 * 1024

/** Records of one event. */
export interface EventBatch {
  /** Each record as JSON. */
  readonly texts: readonly string[]
  /** Of the texts, with what separates them. */
  readonly bytes: number
  /** The last event of its page. */
  readonly isLast: boolean
}

/**
 * The records of a page from `start` that fit an event. Each is serialised here, after the event before was sent, so that a large
 * page does not block the event loop. An empty page is one empty event. A record larger than an event is an event of its own.
 *
 * Depends on the arguments alone: a page that is sent again, to a receiver that answers the same, has the same events and sequence
 * numbers.
 */
export function takeEvent(records: readonly Json[], start: number, bytesMax: number): EventBatch {
  const texts: string[] = []
  let bytes = 0
  for (const record of records.slice(start, start + BATCH_RECORDS_MAX)) {
    const text = JSON.stringify(record)
    const added = Buffer.byteLength(text) + 1
    if (texts.length > 0 && bytes + added > bytesMax) break
    texts.push(text)
    bytes += added
  }
  return { texts, bytes, isLast: start + texts.length >= records.length }
}
