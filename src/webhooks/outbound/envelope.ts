import type { JsonObject } from '../../foundation/json/index.ts'

/** How an event is written into the body: as this product's own envelope, or as a structured CloudEvents 1.0 event. */
export type WebhookEnvelope = 'standard' | 'cloudevents'

/** What encoding an event takes of its receiver. */
export interface EnvelopeTarget {
  readonly webhookId: string
  readonly environmentId: string
  readonly envelope: WebhookEnvelope
}

/** One event, before it is encoded. */
export interface OutboundEvent {
  /** Idempotency key for the receiver: the same over retries, resumed runs and replays. Contains no `.`. */
  readonly id: string
  /** A name of the event catalog, e.g. `sync_job_run:started`. */
  readonly event: string
  readonly payload: JsonObject
  readonly createdAt: Date
  /** The account that it concerns; part of CloudEvents alone. Absent or null when it concerns none. */
  readonly integratedAccountId?: string | null | undefined
  /** An example that a caller asked for: the body says `"test": true`. */
  readonly isTest?: boolean | undefined
}

/** One encoded event; every attempt sends and signs these bytes. */
export interface OutboundMessage {
  readonly id: string
  readonly body: Uint8Array
}

/**
 * Encodes an event as its envelope: `{id, event, payload, environment_id, webhook_id, created_at}`, or the same as a structured
 * CloudEvents 1.0 event. The bytes depend on the arguments alone, so that every attempt sends the same.
 */
export function encodeEvent(target: EnvelopeTarget, event: OutboundEvent): OutboundMessage {
  return encodeWithPayload(target, event, JSON.stringify(event.payload))
}

/**
 * Like `encodeEvent`, for a payload with a long list whose items are already JSON text, which is inserted as it is.
 *
 * @param listKey the payload's key of the list; must not be one of its other keys
 */
export function encodeEventWithList(
  target: EnvelopeTarget,
  event: OutboundEvent,
  listKey: string,
  items: readonly string[],
): OutboundMessage {
  const head = JSON.stringify(event.payload).slice(0, -1)
  const comma = head === '{' ? '' : ','
  return encodeWithPayload(target, event, `${head}${comma}${JSON.stringify(listKey)}:[${items.join(',')}]}`)
}

function encodeWithPayload(target: EnvelopeTarget, event: OutboundEvent, payload: string): OutboundMessage {
  const { before, key, after } = target.envelope === 'cloudevents' ? cloudEvent(target, event) : standard(target, event)
  const [head, tail] = [JSON.stringify(before).slice(0, -1), JSON.stringify(after).slice(1)]
  return { id: event.id, body: Buffer.from(`${head},"${key}":${payload}${tail === '}' ? '' : ','}${tail}`) }
}

/** The members around the payload, and its key. */
interface EnvelopeParts {
  readonly before: JsonObject
  readonly key: string
  readonly after: JsonObject
}

function standard({ environmentId, webhookId }: EnvelopeTarget, event: OutboundEvent): EnvelopeParts {
  return {
    before: { id: event.id, event: event.event },
    key: 'payload',
    after: {
      environment_id: environmentId,
      webhook_id: webhookId,
      created_at: event.createdAt.toISOString(),
      ...(event.isTest === true && { test: true }),
    },
  }
}

/**
 * CloudEvents 1.0, structured mode of its HTTP binding. In binary mode the attributes would be headers, which the signature of
 * Standard Webhooks does not cover: a receiver could not trust `type`, `source` and `time`.
 *
 * `source` and `id` together identify an event. Extension attributes have lower-case letters and digits alone.
 */
function cloudEvent({ environmentId, webhookId }: EnvelopeTarget, event: OutboundEvent): EnvelopeParts {
  const { integratedAccountId, isTest } = event
  return {
    before: {
      specversion: '1.0',
      id: event.id,
      source: `/environment/${environmentId}`,
      type: event.event,
      time: event.createdAt.toISOString(),
      ...(typeof integratedAccountId === 'string' && { integratedaccountid: integratedAccountId }),
      webhookid: webhookId,
      ...(isTest === true && { test: true }),
      datacontenttype: 'application/json',
    },
    key: 'data',
    after: {},
  }
}

/** The content type of an envelope. */
export function contentTypeOf(envelope: WebhookEnvelope): string {
  return envelope === 'cloudevents' ? 'application/cloudevents+json' : 'application/json'
}
