import type { Json, JsonObject } from '../base/index.ts'

/** Where events are delivered, and the secrets that sign them. */
export interface WebhookTarget {
  readonly webhookId: string
  readonly environmentId: string
  readonly url: string
  /** Every secret that is valid now, newest first; at least one. */
  readonly secrets: readonly string[]
}

/** One event, before it is encoded. */
export interface OutboundEvent {
  /** Idempotency key for the receiver: the same over retries, resumed runs and replays. Contains no `.`. */
  readonly id: string
  /** A name of the event catalog, e.g. `sync_job_run:started`. */
  readonly event: string
  readonly payload: JsonObject
  readonly createdAt: Date
}

/** One encoded event; every attempt sends and signs these bytes. */
export interface OutboundMessage {
  readonly id: string
  readonly body: Uint8Array
}

/** Encodes an event as its envelope: `{id, event, payload, environment_id, webhook_id, created_at}`. */
export function encodeEvent(target: WebhookTarget, event: OutboundEvent): OutboundMessage {
  return encodeEnvelope(target, event, JSON.stringify(event.payload))
}

/**
 * Like `encodeEvent`, for a payload with a long list whose items are already JSON text, which is inserted as it is.
 *
 * @param listKey the payload's key of the list; must not be one of its other keys
 */
export function encodeEventWithList(
  target: WebhookTarget,
  event: OutboundEvent,
  listKey: string,
  items: readonly string[],
): OutboundMessage {
  const head = JSON.stringify(event.payload).slice(0, -1)
  const comma = head === '{' ? '' : ','
  return encodeEnvelope(target, event, `${head}${comma}${JSON.stringify(listKey)}:[${items.join(',')}]}`)
}

function encodeEnvelope(target: WebhookTarget, event: OutboundEvent, payload: string): OutboundMessage {
  const before = `{"id":${jsonText(event.id)},"event":${jsonText(event.event)},"payload":`
  const after = `,"environment_id":${jsonText(target.environmentId)},"webhook_id":${jsonText(target.webhookId)},"created_at":${jsonText(event.createdAt.toISOString())}}`
  return { id: event.id, body: Buffer.from(before + payload + after) }
}

function jsonText(value: Json): string {
  return JSON.stringify(value)
}
