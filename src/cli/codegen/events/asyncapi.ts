import type { JsonObject } from '@bufbuild/protobuf'
import { type EventType, examplePayload } from '../../../platform/outbox/index.ts'
import { bodySchema, type EventContract, type EventsContract } from './event-contract.ts'

const INFO: JsonObject = {
  title: 'Patchbay events',
  version: 'v1',
  description: [
    'What happened in an environment, sent to its webhooks as signed HTTP requests (Standard Webhooks 1.0.0).',
    'A delivery is accepted by any status of 2xx. Others are repeated with the same body and `webhook-id`.',
  ].join('\n\n'),
}

/** The headers of a delivery that are signed or sign it. */
const HEADERS: JsonObject = {
  type: 'object',
  properties: {
    'webhook-id': { type: 'string', description: 'Identifier of the event: the same over retries and replays.' },
    'webhook-timestamp': { type: 'string', pattern: '^[0-9]+$', description: 'Unix time of the attempt, in seconds.' },
    'webhook-signature': {
      type: 'string',
      description:
        'Signatures `v1,<base64>` of `<webhook-id>.<webhook-timestamp>.<body>`, separated by spaces: one for each valid secret.',
    },
  },
  required: ['webhook-id', 'webhook-timestamp', 'webhook-signature'],
}

/** The AsyncAPI 3.0 document of what this service sends: one channel, the webhook, with one message for each type of event. */
export function asyncApiDocument(contract: EventsContract): JsonObject {
  const { events, schemas } = contract
  const refs = events.map(({ name }) => [name, { $ref: `#/components/messages/${name}` }] as const)
  return {
    asyncapi: '3.0.0',
    info: INFO,
    defaultContentType: 'application/json',
    channels: {
      webhook: {
        address: null,
        title: 'Webhook',
        description: 'The `target_url` of a webhook of the environment.',
        messages: Object.fromEntries(refs),
      },
    },
    operations: {
      deliver: {
        action: 'send',
        channel: { $ref: '#/channels/webhook' },
        summary: 'Sends an event to a webhook that asks for it.',
        bindings: { http: { method: 'POST', bindingVersion: '0.3.0' } },
        messages: refs.map(([name]) => ({ $ref: `#/channels/webhook/messages/${name}` })),
      },
    },
    components: {
      messages: Object.fromEntries(events.map((event) => [event.name, message(contract, event)])),
      messageTraits: { delivery: { headers: HEADERS, contentType: 'application/json' } },
      schemas: { ...schemas },
    },
  }
}

function message(contract: EventsContract, event: EventContract): JsonObject {
  return {
    name: event.type,
    title: event.type,
    summary: event.description,
    traits: [{ $ref: '#/components/messageTraits/delivery' }],
    payload: bodySchema(contract, event),
    examples: [{ name: 'example', payload: exampleBody(event.type) }],
  }
}

function exampleBody(type: string): JsonObject {
  return {
    id: '01940f8a-0c00-7000-8000-000000000001',
    event: type,
    payload: examplePayload(type as EventType) as unknown as JsonObject,
    environment_id: '01940f8a-0c00-7000-8000-000000000002',
    webhook_id: '01940f8a-0c00-7000-8000-000000000003',
    created_at: '2025-01-15T09:30:00.000Z',
  }
}
