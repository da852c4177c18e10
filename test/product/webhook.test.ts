import { describe, expect, it } from 'vitest'
import { SyncJobCronTriggerService } from '../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
import { WebhookService } from '../../gen/patchbay/v1/webhook_service_pb.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import type { Client } from '../support/client.ts'
import { statusOver, TIME, UUID } from '../support/matchers.ts'
import { NEVER_FIRES, seedTenant } from '../support/seeded-tenant.ts'

const {
  createWebhook: create,
  getWebhook: get,
  listWebhooks: list,
  updateWebhook: update,
  deleteWebhook: remove,
  rotateWebhookSecret: rotate,
} = WebhookService.method

const app = await startTestApp()
const clients = app.clients()
const SECRET: unknown = expect.stringMatching(/^whsec_[A-Za-z0-9+/]{32,}={0,2}$/)
const URL = 'https://app.example.com/hook'

const make = (client: Client, fields: JsonObject = {}) => client.ok(create, { target_url: URL, ...fields })

describe.each(inTurn(clients))('adding a webhook over $wire', (client) => {
  it('shows its secret this once, and the rest reads back on every wire', async () => {
    const webhook = await make(client, {
      event_types: ['sync_job_run:record', 'sync_job_run:failed'],
      is_active: false,
    })

    expect(webhook).toEqual({
      id: UUID,
      environment_id: app.first.environmentId,
      target_url: URL,
      event_types: ['sync_job_run:record', 'sync_job_run:failed'],
      is_active: false,
      description: '',
      filter: {},
      headers: {},
      envelope: 'standard',
      compatibility: 'none',
      max_event_bytes: 262_144,
      state: 'paused',
      created_at: TIME,
      updated_at: webhook.created_at,
      etag: '"v1"',
      secret: SECRET,
    })
    const { secret: _, ...readable } = webhook
    for (const other of clients) expect(await other.ok(get, { id: webhook.id })).toEqual(readable)
  })

  it('needs the address alone: active, all events', async () => {
    expect(await make(client)).toMatchObject({ event_types: [], is_active: true, state: 'active' })
  })

  it('never shows the secret again', async () => {
    const { id, secret } = await make(client)
    const answers = [
      await client.ok(get, { id }),
      await client.ok(list, {}),
      await client.ok(update, { id, is_active: false }),
    ]
    for (const answer of answers) {
      expect(JSON.stringify(answer)).not.toContain(secret)
      expect(answer).not.toHaveProperty('secret')
    }
  })
})

describe.each(inTurn(clients))('an address that may not be called over $wire', (client) => {
  it.each(['http://127.0.0.1/hook', 'http://10.0.0.1', 'http://localhost:9000/hook', 'ftp://a.example', 'not a url'])(
    'is refused: %s',
    async (url) => {
      const before = await client.ok(list, { page_size: 1000 })

      const rejection = await client.callError(create, { target_url: url })

      expect(rejection).toMatchObject({
        code: 'INVALID_ARGUMENT',
        reason: 'URL_NOT_ALLOWED',
        httpStatus: statusOver(client, 400),
      })
      expect(rejection.violations).toEqual([expect.objectContaining({ field: 'target_url' })])
      expect(await client.ok(list, { page_size: 1000 })).toEqual(before)
    },
  )

  it('is rejected by an update, which then changes nothing', async () => {
    const { secret: _, ...webhook } = await make(client)
    const rejection = await client.callError(update, { id: webhook.id, target_url: 'http://[::1]/', is_active: false })

    expect(rejection.reason).toBe('URL_NOT_ALLOWED')
    expect(await client.ok(get, { id: webhook.id })).toEqual(webhook)
  })
})

describe.each(inTurn(clients))('an event that does not exist over $wire', (client) => {
  it('is rejected with its place in the list', async () => {
    const rejection = await client.callError(create, {
      target_url: URL,
      event_types: ['record:created', 'record:invented', 'invented:*'],
    })

    expect(rejection).toMatchObject({ code: 'INVALID_ARGUMENT', reason: 'INVALID_FIELD' })
    expect(rejection.violations.map(({ field }) => field)).toEqual(['event_types[1]', 'event_types[2]'])
  })
})

describe.each(inTurn(clients))('a pattern of events over $wire', (client) => {
  it('is kept as it was written', async () => {
    expect(await make(client, { event_types: ['sync_job_run:*'] })).toMatchObject({ event_types: ['sync_job_run:*'] })
  })

  it.each(['anything', 'Record:created', '*:created', ''])('is rejected when it is none: "%s"', async (pattern) => {
    const { violations } = await client.callError(create, { target_url: URL, event_types: [pattern] })
    expect(violations).toEqual([expect.objectContaining({ field: 'event_types[0]', rule: 'string.pattern' })])
  })
})

describe.each(inTurn(clients))('changing a webhook over $wire', (client) => {
  it('keeps what is not given; an empty list of events counts as not given', async () => {
    const { secret: _, ...before } = await make(client, { event_types: ['record:created'] })

    const after = await client.ok(update, { id: before.id, target_url: 'https://new.example.com', event_types: [] })

    expect(after).toEqual({ ...before, target_url: 'https://new.example.com', updated_at: TIME, etag: '"v2"' })
  })

  it('replaces the events, and a star asks for all of them', async () => {
    const { id } = await make(client, { event_types: ['record:created'] })
    expect(await client.ok(update, { id, event_types: ['record:deleted'] })).toMatchObject({
      event_types: ['record:deleted'],
    })
    expect(await client.ok(update, { id, event_types: ['*'] })).toMatchObject({ event_types: ['*'] })
  })
})

describe.each(inTurn(clients))('rotating a secret over $wire', (client) => {
  it('shows a new one, this once, and changes nothing else', async () => {
    const { secret, ...webhook } = await make(client)

    const rotated = await client.ok(rotate, { id: webhook.id })

    expect(rotated).toEqual({ ...webhook, secret: SECRET })
    expect(rotated.secret).not.toBe(secret)
    expect(await client.ok(get, { id: webhook.id })).toEqual(webhook)
  })

  it('works as often as wanted, any the spelling of the id', async () => {
    const { id, secret } = await make(client)
    const secrets = [secret]
    for (const spelling of [id, id.toUpperCase(), id]) secrets.push((await client.ok(rotate, { id: spelling })).secret)

    expect(new Set(secrets).size).toBe(4)
  })
})

describe('deleting a webhook', async () => {
  const world = await seedTenant(app, app.first)
  const schedule = async (client: Client, webhookId: string) =>
    await client.ok(SyncJobCronTriggerService.method.createSyncJobCronTrigger, {
      sync_job_id: world.syncJobId,
      integrated_account_id: world.integratedAccountId,
      cron_expression: NEVER_FIRES,
      webhook_id: webhookId,
    })

  it.each(inTurn(clients))(
    'to which a trigger sends is refused over $wire, and with force takes the trigger along',
    async (client) => {
      const { id } = await make(client)
      const trigger = await schedule(client, id)
      const { getSyncJobCronTrigger } = SyncJobCronTriggerService.method

      expect(await client.callError(remove, { id })).toMatchObject({
        code: 'FAILED_PRECONDITION',
        reason: 'RESOURCE_IN_USE',
        resource: { type: 'webhook', id },
        httpStatus: statusOver(client, 400),
      })
      await client.ok(getSyncJobCronTrigger, { id: trigger.id })

      expect(await client.ok(remove, { id, force: true })).toEqual({})
      expect(await client.callError(getSyncJobCronTrigger, { id: trigger.id })).toMatchObject({ code: 'NOT_FOUND' })
    },
  )
})
