import type { MessageInitShape } from '@bufbuild/protobuf'
import type { WebhookSchema } from '../../../gen/patchbay/v1/webhook_pb.ts'
import type { CreateWebhookRequest, UpdateWebhookRequest } from '../../../gen/patchbay/v1/webhook_service_pb.ts'
import { SECRET_MASK } from '../../redaction/index.ts'
import { type WebhookChange, type WebhookInput, type WebhookRecord, webhookState } from '../../webhooks/index.ts'
import { structFrom } from '../messages/struct.ts'
import { parseEnum, timestampFrom, toEtag } from './values.convert.ts'

const ENVELOPES = ['standard', 'cloudevents'] as const
const COMPATIBILITIES = ['none', 'single_header_base64', 'single_header_hex'] as const

/**
 * A webhook without its secret, the values of its headers masked.
 *
 * @param secret only in the responses of creation and rotation, which alone show it
 */
export function webhookToProto(webhook: WebhookRecord, secret?: string): MessageInitShape<typeof WebhookSchema> {
  const { rateLimitRequests, rateLimitSeconds, failingSince } = webhook
  const hasLimit = rateLimitRequests !== null && rateLimitSeconds !== null
  return {
    id: webhook.id,
    environmentId: webhook.environmentId,
    targetUrl: webhook.targetUrl,
    description: webhook.description,
    eventTypes: [...webhook.eventTypes],
    filter: structFrom(webhook.filter),
    headers: Object.fromEntries(webhook.headerNames.map((name) => [name, SECRET_MASK])),
    envelope: webhook.envelope,
    compatibility: webhook.compatibility,
    rateLimit: hasLimit ? { requests: rateLimitRequests, windowSeconds: rateLimitSeconds } : undefined,
    isActive: webhook.isActive,
    state: webhookState(webhook),
    disabledReason: webhook.disabledReason ?? undefined,
    failingSince: timestampFrom(failingSince),
    createdAt: timestampFrom(webhook.createdAt),
    updatedAt: timestampFrom(webhook.updatedAt),
    etag: toEtag(webhook.version),
    secret,
  }
}

export function webhookInputFromProto(request: CreateWebhookRequest): WebhookInput {
  const { targetUrl, description, eventTypes, isActive, ...options } = request
  return { targetUrl, description, eventTypes, isActive, ...optionsFromProto(options) }
}

/** The changes of a webhook. A list has no presence: an empty one changes nothing; `*` is all events. */
export function webhookChangeFromProto(request: UpdateWebhookRequest): WebhookChange {
  const { targetUrl, description, eventTypes, isActive, headers, ...options } = request
  const hasHeaders = Object.keys(headers).length > 0
  return {
    targetUrl,
    description,
    eventTypes: eventTypes.length === 0 ? undefined : eventTypes,
    isActive,
    ...optionsFromProto({ ...options, headers: hasHeaders ? headers : undefined }),
  }
}

function optionsFromProto({
  filter,
  headers,
  envelope,
  compatibility,
  rateLimit,
}: Pick<CreateWebhookRequest, 'filter' | 'envelope' | 'compatibility' | 'rateLimit'> & {
  readonly headers: Readonly<Record<string, string>> | undefined
}) {
  return {
    filter,
    headers,
    envelope: parseEnum(ENVELOPES, envelope),
    compatibility: parseEnum(COMPATIBILITIES, compatibility),
    rateLimit,
  }
}
