import type { MessageInitShape } from '@bufbuild/protobuf'
import type { WebhookSchema } from '../../../gen/patchbay/v1/webhook_pb.ts'
import { type UpdateWebhookRequest, WebhookService } from '../../../gen/patchbay/v1/webhook_service_pb.ts'
import {
  createWebhook,
  deleteWebhook,
  getWebhook,
  listWebhooks,
  rotateWebhookSecret,
  updateWebhook,
  type WebhookChange,
  type WebhookRecord,
} from '../../webhooks/index.ts'
import { environmentIdOf } from '../caller.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'
import type { ServiceDeps } from './deps.ts'
import { runIdempotent } from './idempotency.ts'
import { checkRange, pageById, queryOf } from './page.ts'
import { timestampFrom, toEtag, versionFrom } from './values.convert.ts'
import { webhookDeliveryHandlers } from './webhook-delivery.ts'

/** Administers webhooks. */
export function webhookService(
  deps: Pick<ServiceDeps, 'database' | 'secrets' | 'clock' | 'webhooks'>,
): ServiceDefinition {
  const { database, webhooks } = deps
  return defineService(
    WebhookService,
    {
      ...webhookDeliveryHandlers(deps),
      createWebhook: (request, context) =>
        runIdempotent(deps, environmentIdOf(context), WebhookService.method.createWebhook, request, async (tx) => {
          const { webhook, secret } = await createWebhook(webhooks, tx, environmentIdOf(context), request)
          return webhookToProto(webhook, secret)
        }),
      getWebhook: async ({ id }, context) =>
        webhookToProto(await getWebhook(database.pool, environmentIdOf(context), id)),
      listWebhooks: async (request, context) => {
        const query = queryOf('webhook', environmentIdOf(context))
        const page = await pageById(query, request, (range) =>
          listWebhooks(database.pool, environmentIdOf(context), range),
        )
        return { webhooks: page.items.map((webhook) => webhookToProto(webhook)), nextPageToken: page.nextPageToken }
      },
      updateWebhook: async (request, context) => {
        const input = { ...webhookChangeFromProto(request), id: request.id, version: versionFrom(request.etag) }
        return webhookToProto(await updateWebhook(webhooks, database.pool, environmentIdOf(context), input))
      },
      deleteWebhook: async ({ id, etag, force }, context) => {
        const input = { id, version: versionFrom(etag), force }
        await database.transaction((tx) => deleteWebhook(webhooks, tx, environmentIdOf(context), input))
        return {}
      },
      rotateWebhookSecret: (request, context) =>
        runIdempotent(
          deps,
          environmentIdOf(context),
          WebhookService.method.rotateWebhookSecret,
          request,
          async (tx) => {
            // The id is part of the authenticated data of the secret, and a uuid may be in upper case.
            const { webhook, secret } = await rotateWebhookSecret(
              webhooks,
              tx,
              environmentIdOf(context),
              request.id.toLowerCase(),
            )
            return webhookToProto(webhook, secret)
          },
        ),
    },
    {
      listWebhookDeliveries: checkRange,
      recoverWebhookDeliveries: checkRange,
      replayMissingWebhookDeliveries: checkRange,
    },
  )
}

/**
 * A webhook without its secret.
 *
 * @param secret only in the responses of creation and rotation, which alone show it
 */
function webhookToProto(webhook: WebhookRecord, secret?: string): MessageInitShape<typeof WebhookSchema> {
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

/** The changes of a webhook. A list has no presence: an empty one changes nothing; `*` is all events. */
function webhookChangeFromProto({ targetUrl, eventTypes, isActive }: UpdateWebhookRequest): WebhookChange {
  return { targetUrl, eventTypes: eventTypes.length === 0 ? undefined : eventTypes, isActive }
}
