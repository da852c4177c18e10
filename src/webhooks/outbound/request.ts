import type { EventRecord } from '../../platform/outbox/index.ts'
import { contentTypeOf, type EnvelopeTarget, encodeEvent, type OutboundMessage } from './envelope.ts'
import { signatureHeaders, singleSignatureHeader, type WebhookCompatibility } from './signing.ts'

/** Where events are delivered, and what a request to it is built from. */
export interface WebhookTarget extends EnvelopeTarget {
  readonly url: string
  /** Every secret that is valid now, newest first; at least one. */
  readonly secrets: readonly string[]
  /** Custom headers by lower-case name; the values are secrets. */
  readonly headers: Readonly<Record<string, string>>
  /** Of a further signature header beside those of Standard Webhooks. */
  readonly compatibility: WebhookCompatibility
  /** Bytes of the body of an event of records at most; a larger record is an event of its own. */
  readonly maxEventBytes: number
}

/** Larger events than 256 KiB are more than some receivers take, and Standard Webhooks advises against them. */
export const EVENT_BYTES_DEFAULT = 256 * 1024

/** One signed request: what an attempt sends to the URL of its webhook. */
export interface DeliveryRequest {
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** What a delivery sends of an event. */
export interface DeliveredEvent
  extends Pick<EventRecord, 'id' | 'type' | 'payload' | 'createdAt' | 'integratedAccountId'> {
  readonly isTest?: boolean | undefined
}

/**
 * The request of one attempt to deliver an event. The body is the same for every attempt, as long as the webhook keeps its
 * envelope; the signature is of this attempt's time.
 *
 * @param timestampSeconds time of the attempt since 1970: receivers reject old ones
 */
export function buildDeliveryRequest(
  target: WebhookTarget,
  event: DeliveredEvent,
  timestampSeconds: number,
): DeliveryRequest {
  return signRequest(target, encodeEvent(target, { ...event, event: event.type }), timestampSeconds)
}

/** The request of one attempt to deliver an encoded event. */
export function signRequest(
  target: WebhookTarget,
  message: OutboundMessage,
  timestampSeconds: number,
): DeliveryRequest {
  const content = { ...message, timestampSeconds }
  const headers = {
    ...target.headers,
    'content-type': contentTypeOf(target.envelope),
    'user-agent': 'Patchbay-Webhooks/1',
    // The beginning of the response is logged as text, without decompressing it.
    'accept-encoding': 'identity',
    ...signatureHeaders(content, target.secrets),
    ...singleSignatureHeader(target.compatibility, content, target.secrets),
  }
  return { headers, body: message.body }
}
