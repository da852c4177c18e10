import { WebhookSchema } from '../../../../gen/patchbay/v1/webhook_pb.ts'
import type { CreateWebhookRequest, UpdateWebhookRequest } from '../../../../gen/patchbay/v1/webhook_service_pb.ts'
import { SECRET_MASK } from '../../../foundation/redaction/index.ts'
import {
  type WebhookChange,
  type WebhookInput,
  type WebhookRecord,
  webhookState,
} from '../../../webhooks/outbound/index.ts'
import { shapeOf } from './shape.ts'
import { parseEnum } from './values.convert.ts'

const ENVELOPES = ['standard', 'cloudevents'] as const
const COMPATIBILITIES = ['none', 'single_header_base64', 'single_header_hex'] as const

/**
 * A webhook without its secret, the values of its headers masked.
 *
 * @param secret only in the responses of creation and rotation, which alone show it
 */
export const webhookToProto = shapeOf(WebhookSchema).from<WebhookRecord & { readonly secret?: string }>({
  headers: ({ headerNames }) => Object.fromEntries(headerNames.map((name) => [name, SECRET_MASK])),
  rateLimit: ({ rateLimitRequests: requests, rateLimitSeconds: windowSeconds }) =>
    requests === null || windowSeconds === null ? undefined : { requests, windowSeconds },
  state: webhookState,
})

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
  maxEventBytes,
}: Pick<CreateWebhookRequest, 'filter' | 'envelope' | 'compatibility' | 'rateLimit' | 'maxEventBytes'> & {
  readonly headers: Readonly<Record<string, string>> | undefined
}) {
  return {
    filter,
    headers,
    envelope: parseEnum(ENVELOPES, envelope),
    compatibility: parseEnum(COMPATIBILITIES, compatibility),
    rateLimit,
    maxEventBytes,
  }
}
