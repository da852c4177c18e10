import type { MessageInitShape } from '@bufbuild/protobuf'
import type { WebhookSchema } from '../../../gen/patchbay/v1/webhook_pb.ts'
import type { UpdateWebhookRequest } from '../../../gen/patchbay/v1/webhook_service_pb.ts'
import { toEtag, type WebhookChange, type WebhookRecord } from '../../storage/index.ts'
import { timestampFrom } from './timestamp.ts'

/**
 * A webhook as it can be read back.
 *
 * @param secret given in the two answers that show it: of creation and of rotation
 */
export function webhookToProto(webhook: WebhookRecord, secret?: string): MessageInitShape<typeof WebhookSchema> {
  return {
    id: webhook.id,
    environmentId: webhook.environmentId,
    targetUrl: webhook.targetUrl,
    eventTypes: [...webhook.eventTypes],
    isActive: webhook.isActive,
    createdAt: timestampFrom(webhook.createdAt),
    updatedAt: timestampFrom(webhook.updatedAt),
    etag: toEtag(webhook.version),
    secret,
  }
}

/** A list has no presence, so an empty one asks for nothing; `*` asks for all events. */
export function webhookChangeFromProto({ targetUrl, eventTypes, isActive }: UpdateWebhookRequest): WebhookChange {
  return { targetUrl, eventTypes: eventTypes.length === 0 ? undefined : eventTypes, isActive }
}
