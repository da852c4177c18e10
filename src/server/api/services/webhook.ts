import { WebhookService } from '../../../../gen/patchbay/v1/webhook_service_pb.ts'
import {
  createWebhook,
  deleteWebhook,
  getWebhook,
  listWebhooks,
  rotateWebhookSecret,
  settleRotation,
  updateWebhook,
} from '../../../webhooks/outbound/index.ts'
import { environmentIdOf } from '../caller.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'
import type { ServiceDeps } from './deps.ts'
import { runIdempotent } from './idempotency.ts'
import { byId, listRpc } from './list-rpc.ts'
import { checkRange } from './time-range.ts'
import { versionFrom } from './values.convert.ts'
import { webhookChangeFromProto, webhookInputFromProto, webhookToProto } from './webhook.convert.ts'
import { webhookDeliveryHandlers } from './webhook-delivery.ts'
import { checkFilterPaths } from './webhook-filter.ts'

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
          const { webhook, secret } = await createWebhook(
            webhooks,
            tx,
            environmentIdOf(context),
            webhookInputFromProto(request),
          )
          return webhookToProto({ ...webhook, secret })
        }),
      getWebhook: async ({ id }, context) =>
        webhookToProto(await getWebhook(database.pool, environmentIdOf(context), id)),
      listWebhooks: listRpc(
        WebhookService.method.listWebhooks,
        webhookToProto,
        byId({
          list: 'webhook',
          owner: environmentIdOf,
          read: (range, context) => listWebhooks(database.pool, environmentIdOf(context), range),
        }),
      ),
      updateWebhook: async (request, context) => {
        const input = { ...webhookChangeFromProto(request), id: request.id, version: versionFrom(request.etag) }
        const updated = await database.transaction((tx) => updateWebhook(webhooks, tx, environmentIdOf(context), input))
        return webhookToProto(updated)
      },
      deleteWebhook: async ({ id, etag, force }, context) => {
        const input = { id, version: versionFrom(etag), force }
        await database.transaction((tx) => deleteWebhook(webhooks, tx, environmentIdOf(context), input))
        return {}
      },
      rotateWebhookSecret: async (request, context) => {
        const environmentId = environmentIdOf(context)
        const method = WebhookService.method.rotateWebhookSecret
        const rotated = await runIdempotent(deps, environmentId, method, request, async (tx) => {
          // The id is part of the authenticated data of the secret, and a uuid may be in upper case.
          const { webhook, secret } = await rotateWebhookSecret(webhooks, tx, environmentId, request.id.toLowerCase())
          return webhookToProto({ ...webhook, secret })
        })
        await settleRotation(deps, context.signal)
        return rotated
      },
    },
    {
      createWebhook: ({ filter, eventTypes }) => checkFilterPaths(filter, eventTypes),
      updateWebhook: ({ filter, eventTypes }) => checkFilterPaths(filter, eventTypes),
      listWebhookDeliveries: checkRange,
      recoverWebhookDeliveries: checkRange,
      replayMissingWebhookDeliveries: checkRange,
    },
  )
}
