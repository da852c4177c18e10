import type { Json, JsonObject, Violation } from '../base/index.ts'

/** The event catalog: every event the product sends, by subject. Names are `<subject>:<what happened>`. */
const EVENT_CATALOG = {
  integrated_account: [
    'created',
    'updated',
    'deleted',
    'active',
    'post_connect_form_submitted',
    'post_install_error',
    'validation_error',
    'authentication_error',
    'forbidden_error',
    'reactivated',
  ],
  link_token: ['connection_error'],
  environment_integration: ['created', 'updated', 'deleted'],
  sync_job_run: [
    'created',
    'updated',
    'started',
    'record',
    'record_error',
    'rate_limited',
    'completed',
    'failed',
    'deleted',
  ],
  sync_job_cron_trigger: ['failed'],
  record: ['created', 'updated', 'deleted', 'meta'],
  api_token: ['created', 'deleted'],
  webhook: ['disabled'],
} as const satisfies Record<string, readonly string[]>

/** The names of all events, in the order of the catalog. */
export const EVENT_TYPES: readonly string[] = Object.entries(EVENT_CATALOG).flatMap(([subject, names]) =>
  names.map((name) => `${subject}:${name}`),
)

/** A violation for every pattern (a name, or a prefix and `*`) that no event of the catalog matches. */
export function checkEventTypes(patterns: readonly string[], field: string): Violation[] {
  return patterns.flatMap((pattern, index) => {
    if (EVENT_TYPES.some((event) => matchesPattern(pattern, event))) return []
    const description = `is not an event or a pattern such as sync_job_run:*; events are ${EVENT_TYPES.join(', ')}`
    return [{ field: `${field}[${index}]`, description, rule: 'event_types.unknown' }]
  })
}

function matchesPattern(pattern: string, event: string): boolean {
  return pattern.endsWith('*') ? event.startsWith(pattern.slice(0, -1)) : pattern === event
}

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
