import { describe, expect, it } from 'vitest'
import { WebhookService } from '../../gen/patchbay/v1/webhook_service_pb.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import type { Client } from '../support/client.ts'

const { createWebhook, getWebhook, listWebhooks, updateWebhook } = WebhookService.method

const app = await startTestApp()
const clients = app.clients()

const OPTIONS = {
  target_url: 'https://app.example.com/hook',
  description: 'Orders of the shop',
  filter: { 'payload.attempt': { $gte: 10 }, $or: [{ type: 'record:created' }, { type: 'record:updated' }] },
  headers: { Authorization: 'Bearer s3cret-value', 'x-tenant': 'acme-secret' },
  envelope: 'cloudevents',
  compatibility: 'single_header_hex',
  rate_limit: { requests: 5, window_seconds: 60 },
} as const
const SHOWN = { ...OPTIONS, headers: { authorization: '***', 'x-tenant': '***' } }

async function make(client: Client, fields: JsonObject = {}) {
  const { secret: _, ...webhook } = await client.ok(createWebhook, { ...OPTIONS, ...fields })
  return webhook
}

describe.each(inTurn(clients))('the options of a webhook over $wire', (client) => {
  it('read back on every wire, the values of headers masked', async () => {
    const webhook = await make(client)
    expect(webhook).toMatchObject(SHOWN)
    for (const other of clients) expect(await other.ok(getWebhook, { id: webhook.id })).toEqual(webhook)
    const { webhooks } = await client.ok(listWebhooks, {})
    expect(JSON.stringify(webhooks)).not.toMatch(/s3cret-value|acme-secret/)
  })

  it('are changed one by one, and the others stay', async () => {
    const webhook = await make(client)
    const changed: JsonObject = { ...webhook, updated_at: expect.anything(), etag: expect.anything() }
    const changes: readonly (readonly [JsonObject, object])[] = [
      [{ description: 'New' }, { description: 'New' }],
      [{ filter: {} }, { filter: {} }],
      [{ envelope: 'standard' }, { envelope: 'standard' }],
      [{ compatibility: 'none' }, { compatibility: 'none' }],
      [{ max_event_bytes: 65_536 }, { max_event_bytes: 65_536 }],
      [{ rate_limit: { requests: 2 } }, { rate_limit: { requests: 2, window_seconds: 1 } }],
      [{ headers: { 'X-Tenant': 'other' } }, { headers: SHOWN.headers }],
      [{ headers: { 'x-tenant': '', 'x-new': 'v' } }, { headers: { authorization: '***', 'x-new': '***' } }],
      [{ headers: { authorization: '***' } }, { headers: { authorization: '***', 'x-new': '***' } }],
      [{ headers: {} }, {}],
    ]
    for (const [change, shown] of changes) {
      Object.assign(changed, shown)
      expect(await client.ok(updateWebhook, { id: webhook.id, ...change })).toEqual(changed)
    }
    const { rate_limit: _, ...unlimited } = changed
    expect(await client.ok(updateWebhook, { id: webhook.id, rate_limit: { requests: 0 } })).toEqual(unlimited)
  })
})

describe.each(inTurn(clients))('an option is rejected over $wire, and nothing is stored', (client) => {
  it.each<[string, JsonObject, string]>([
    ['a filter with an unknown field', { filter: { tenant: 'x' } }, 'filter.tenant'],
    ['a path that no event has', { filter: { $or: [{ 'payload.resorce': 'x' }] } }, 'filter.$or[0].payload.resorce'],
    ['a filter with an unknown operator', { filter: { type: { $like: 'x' } } }, 'filter.type.$like'],
    ['a header that deliveries set', { headers: { 'Webhook-Id': 'x' } }, 'headers.Webhook-Id'],
    ['a header of the body', { headers: { 'content-type': 'text/plain' } }, 'headers.content-type'],
    ['a header of the connection', { headers: { Host: 'a.example' } }, 'headers.Host'],
    ['a header in two cases', { headers: { 'x-a': '1', 'X-A': '2' } }, 'headers.X-A'],
    [
      'headers that are too long together',
      { headers: { 'x-a': 'a'.repeat(4096), 'x-b': 'b'.repeat(4096) } },
      'headers',
    ],
    ['a mask without a value', { headers: { 'x-unknown': '***' } }, 'headers.x-unknown'],
    ['an unknown envelope', { envelope: 'xml' }, 'envelope'],
    ['an unknown compatibility', { compatibility: 'v0' }, 'compatibility'],
    ['a negative rate', { rate_limit: { requests: -1 } }, 'rate_limit.requests'],
    ['a window of two hours', { rate_limit: { requests: 1, window_seconds: 7200 } }, 'rate_limit.window_seconds'],
  ])('%s', async (_, fields, field) => {
    const webhook = await make(client)
    const before = await client.ok(listWebhooks, { page_size: 1000 })
    for (const rejection of [
      await client.callError(createWebhook, { ...OPTIONS, ...fields }),
      await client.callError(updateWebhook, { id: webhook.id, description: 'changed', ...fields }),
    ]) {
      expect(rejection.code).toBe('INVALID_ARGUMENT')
      expect(rejection.violations.map((violation) => violation.field)).toEqual([field])
    }
    expect(await client.ok(listWebhooks, { page_size: 1000 })).toEqual(before)
  })

  it.each([
    ['a header name with a blank', { 'x a': '1' }],
    ['a line break in a value', { 'x-a': '1\r\nx-b: 2' }],
    ['a value that is no ASCII', { 'x-a': 'Zoë' }],
    ['21 headers', Object.fromEntries(Array.from({ length: 21 }, (_, index) => [`x-${index}`, '1']))],
  ])('%s', async (_, headers) => {
    const { code, violations } = await client.callError(createWebhook, { ...OPTIONS, headers })
    expect(code).toBe('INVALID_ARGUMENT')
    expect(violations[0]?.field).toMatch(/^headers/)
  })

  it('more than 20 headers over several updates', async () => {
    const named = (prefix: string) =>
      Object.fromEntries(Array.from({ length: 15 }, (_, index) => [`x-${prefix}-${index}`, '1']))
    const webhook = await make(client, { headers: named('a') })
    const { violations } = await client.callError(updateWebhook, { id: webhook.id, headers: named('b') })
    expect(violations).toEqual([expect.objectContaining({ field: 'headers' })])
    expect(await client.ok(getWebhook, { id: webhook.id })).toEqual(webhook)
  })
})
