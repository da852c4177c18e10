import { WebhookService } from '../../../gen/patchbay/v1/webhook_service_pb.ts'
import {
  createWebhook,
  deleteWebhook,
  getWebhook,
  listWebhooks,
  rotateWebhookSecret,
  updateWebhook,
  type WebhookDeps,
} from '../../webhooks/index.ts'
import { versionFrom } from '../convert/etag.ts'
import { pageById, queryOf } from '../convert/page.ts'
import { webhookChangeFromProto, webhookToProto } from '../convert/webhook.ts'
import { type IdempotencyDeps, runIdempotent } from '../idempotency.ts'
import { defineService, type ServiceDefinition } from '../service.ts'

/** What the service needs. */
export interface WebhookServiceDeps extends IdempotencyDeps {
  readonly webhooks: WebhookDeps
}

/** Keeps the addresses to which events and sync records are sent. */
export function webhookService(deps: WebhookServiceDeps): ServiceDefinition {
  const { database, webhooks } = deps
  return defineService(WebhookService, {
    createWebhook: {
      access: 'environment',
      handle: (request, { principal: { environmentId } }) =>
        runIdempotent(deps, environmentId, WebhookService.method.createWebhook, request, async (tx) => {
          const { webhook, secret } = await createWebhook(webhooks, tx, environmentId, request)
          return webhookToProto(webhook, secret)
        }),
    },
    getWebhook: {
      access: 'environment',
      handle: async ({ id }, { principal: { environmentId } }) =>
        webhookToProto(await getWebhook(database.pool, environmentId, id)),
    },
    listWebhooks: {
      access: 'environment',
      handle: async (request, { principal: { environmentId } }) => {
        const query = queryOf('webhook', environmentId)
        const page = await pageById(query, request, (range) => listWebhooks(database.pool, environmentId, range))
        return { webhooks: page.items.map((webhook) => webhookToProto(webhook)), nextPageToken: page.nextPageToken }
      },
    },
    updateWebhook: {
      access: 'environment',
      handle: async (request, { principal: { environmentId } }) => {
        const input = { ...webhookChangeFromProto(request), id: request.id, version: versionFrom(request.etag) }
        return webhookToProto(await updateWebhook(webhooks, database.pool, environmentId, input))
      },
    },
    deleteWebhook: {
      access: 'environment',
      handle: async ({ id, etag, force }, { principal: { environmentId } }) => {
        const input = { id, version: versionFrom(etag), force }
        await database.transaction((tx) => deleteWebhook(webhooks, tx, environmentId, input))
        return {}
      },
    },
    rotateWebhookSecret: {
      access: 'environment',
      handle: (request, { principal: { environmentId } }) =>
        runIdempotent(deps, environmentId, WebhookService.method.rotateWebhookSecret, request, async (tx) => {
          // Secrets are sealed for the text of the id, of which a uuid has two spellings.
          const { webhook, secret } = await rotateWebhookSecret(webhooks, tx, environmentId, request.id.toLowerCase())
          return webhookToProto(webhook, secret)
        }),
    },
  })
}
