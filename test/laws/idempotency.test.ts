import { describe, expect, it } from 'vitest'
import { SyncJobCronTriggerService } from '../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
import { WebhookService } from '../../gen/patchbay/v1/webhook_service_pb.ts'
import { newId } from '../../src/foundation/base/index.ts'
import { query } from '../../src/foundation/database/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { overWire } from '../support/case-count.ts'
import { KINDS, type ResourceKind, tokenFor } from '../support/operations.ts'
import { createApiEnvironment, seedTenant } from '../support/seeded-tenant.ts'

const app = await startTestApp()
const world = await seedTenant(app, app.first)
const admin = app.client('connect', { token: world.teamToken })
const clients = app.clients({})

async function requestOf(kind: ResourceKind): Promise<JsonObject> {
  return { ...(await kind.createRequest(world, admin)), request_id: newId() }
}

async function countOf(kind: ResourceKind): Promise<number> {
  const page = await admin.ok(kind.list, { page_size: 1000 }, { token: tokenFor(kind, world) })
  const items = page[kind.items]
  return Array.isArray(items) ? items.length : Number.NaN
}

describe('a create repeated with its request_id', () => {
  it.each(KINDS)(
    'gets the first answer again on every wire, secrets included, and creates one: $noun',
    async (kind) => {
      const request = await requestOf(kind)
      const before = await countOf(kind)

      const answers = []
      for (const client of [...clients, ...clients])
        answers.push(await client.ok(kind.create, request, { token: tokenFor(kind, world) }))

      for (const answer of answers) expect(answer).toEqual(answers[0])
      expect(await countOf(kind)).toBe(before + 1)
    },
  )

  it.each(KINDS)('creates one when all repetitions arrive at once: $noun', async (kind) => {
    const request = await requestOf(kind)
    const before = await countOf(kind)

    const answers = await Promise.all(
      [...clients, ...clients].map((client) => client.ok(kind.create, request, { token: tokenFor(kind, world) })),
    )

    for (const answer of answers) expect(answer).toEqual(answers[0])
    expect(await countOf(kind)).toBe(before + 1)
  })

  it('is the same request any the order of keys inside free-form objects', async () => {
    const kind = KINDS.find(({ noun }) => noun === 'integrated_account')!
    const request = await requestOf(kind)
    const ask = (context: JsonObject) =>
      admin.ok(kind.create, { ...request, context }, { token: tokenFor(kind, world) })

    expect(await ask({ b: 1, a: { d: 1, c: 2 } })).toEqual(await ask({ a: { c: 2, d: 1 }, b: 1 }))
  })

  it('is the same request_id in capitals', async () => {
    const kind = KINDS.find(({ noun }) => noun === 'webhook')!
    const request = await requestOf(kind)
    const first = await admin.ok(kind.create, request, { token: tokenFor(kind, world) })
    const capitals = { ...request, request_id: String(request.request_id).toUpperCase() }

    expect(await admin.ok(kind.create, capitals, { token: tokenFor(kind, world) })).toEqual(first)
  })

  it('gets the first answer although the resource has changed since', async () => {
    const { createWebhook, updateWebhook } = WebhookService.method
    const client = app.client('rest')
    const request = { target_url: 'https://app.example.com/once', request_id: newId() }
    const first = await client.ok(createWebhook, request)
    await client.ok(updateWebhook, { id: first.id, is_active: false })

    expect(await client.ok(createWebhook, request)).toEqual(first)
  })
})

describe.each(clients)('a request_id sent with a different request over $wire', (client) => {
  it.each(overWire(client, KINDS))('is rejected and creates nothing: $noun', async (kind) => {
    const request = await requestOf(kind)
    await client.ok(kind.create, request, { token: tokenFor(kind, world) })
    const before = await countOf(kind)

    const rejection = await client.callError(
      kind.create,
      { ...request, ...kind.otherCreate },
      { token: tokenFor(kind, world) },
    )

    expect(rejection).toMatchObject({
      code: 'ABORTED',
      reason: 'IDEMPOTENCY_KEY_REUSED',
      ...(client.wire === 'grpc' ? {} : { httpStatus: 409 }),
    })
    expect(await countOf(kind)).toBe(before)
  })
})

describe('a request_id', () => {
  const { createWebhook, rotateWebhookSecret } = WebhookService.method
  const client = app.client('rest')

  it('belongs to one operation, however alike the requests', async () => {
    const request = { id: world.webhookId, request_id: newId() }
    await client.ok(rotateWebhookSecret, request)

    const rejection = await client.callError(SyncJobCronTriggerService.method.runSyncJobCronTrigger, request)
    expect(rejection.reason).toBe('IDEMPOTENCY_KEY_REUSED')
  })

  it('belongs to one environment', async () => {
    const request = { target_url: 'https://app.example.com/both', request_id: newId() }
    const other = await createApiEnvironment(app, world.teamToken)
    const first = await client.ok(createWebhook, request)
    const second = await client.ok(createWebhook, request, { token: other.environmentToken })

    expect(second.id).not.toBe(first.id)
  })

  it('is stored without anything by which a guess of the request could be tried', async () => {
    const request = { target_url: 'https://a.example/guess', request_id: newId() }
    await client.ok(createWebhook, request)

    const [stored] = await query<Record<string, unknown>>(
      app.database.pool,
      'select *, length(sealed_answer) > 0 as is_sealed from idempotency_key where request_id = :request_id',
      { request_id: request.request_id },
    )
    const { sealedAnswer: _, ...plain } = stored ?? {}
    expect(plain).toEqual({
      ownerId: world.environmentId,
      requestId: request.request_id,
      method: 'patchbay.v1.WebhookService/CreateWebhook',
      createdAt: expect.anything(),
      isSealed: true,
    })
  })

  it('is free again after a rejection', async () => {
    const requestId = newId()
    const rejection = await client.callError(createWebhook, { target_url: 'ftp://a.example', request_id: requestId })

    expect(rejection.reason).toBe('URL_NOT_ALLOWED')
    await client.ok(createWebhook, { target_url: 'https://a.example', request_id: requestId })
  })

  it.each(['order-2026/0001', 'ORDER 1', '1', 'ü'.repeat(255)])('may be any text: %s', async (requestId) => {
    const first = await client.ok(createWebhook, { target_url: 'https://a.example/text', request_id: requestId })
    const again = await client.ok(createWebhook, { target_url: 'https://a.example/text', request_id: requestId })
    const other = await client.ok(createWebhook, {
      target_url: 'https://a.example/text',
      request_id: `${requestId.slice(1)}!`,
    })
    expect([again.id, other.id === first.id]).toEqual([first.id, false])
  })

  it.each(['', 'x'.repeat(256)])('has 1 to 255 characters: not "%s"', async (requestId) => {
    const rejection = await client.callError(createWebhook, { target_url: 'https://a.example', request_id: requestId })
    expect(rejection.violations).toEqual([expect.objectContaining({ field: 'request_id' })])
  })

  it('is the same quoted in that header and bare', async () => {
    const send = (key: string) =>
      client.ok(createWebhook, { target_url: 'https://a.example/q' }, { headers: { 'idempotency-key': key } })
    expect(await send('"order-7"')).toEqual(await send('order-7'))
  })

  it('can be sent over REST in the header Idempotency-Key', async () => {
    const headers = { 'idempotency-key': newId() }
    const first = await client.ok(createWebhook, { target_url: 'https://a.example/h' }, { headers })

    expect(await client.ok(createWebhook, { target_url: 'https://a.example/h' }, { headers })).toEqual(first)
    const rejection = await client.callError(createWebhook, { target_url: 'https://b.example/h' }, { headers })
    expect(rejection.reason).toBe('IDEMPOTENCY_KEY_REUSED')
  })
})

describe('a secret rotation repeated with its request_id', () => {
  it('rotates once and shows the same secret', async () => {
    const { rotateWebhookSecret } = WebhookService.method
    const request = { id: world.webhookId, request_id: newId() }
    const [first, ...again] = await Promise.all(
      clients.map((client) => client.ok(rotateWebhookSecret, request, { token: world.environmentToken })),
    )

    for (const answer of again) expect(answer.secret).toBe(first!.secret)
    const next = await admin.ok(rotateWebhookSecret, { id: world.webhookId }, { token: world.environmentToken })
    expect(next.secret).not.toBe(first!.secret)
  })
})
