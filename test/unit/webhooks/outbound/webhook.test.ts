import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import { execute } from '../../../../src/foundation/database/index.ts'
import { createEgressPolicy, findUrlViolation } from '../../../../src/foundation/egress/index.ts'
import { createSecretStore, generateKeyRingText, parseKeyRing } from '../../../../src/foundation/secrets/index.ts'
import { triggerCascade } from '../../../../src/sync/runs/sql/cascade-delete.ts'
import type { WebhookInput } from '../../../../src/webhooks/outbound/index.ts'
import {
  createWebhook,
  deleteWebhook,
  findWebhookTarget,
  getWebhook,
  listWebhooks,
  rotateWebhookSecret,
  updateWebhook,
} from '../../../../src/webhooks/outbound/index.ts'
import { signatureHeaders } from '../../../../src/webhooks/outbound/signing.ts'
import { testDatabase } from '../../../support/database.ts'
import { fastClock } from '../../../support/fast-clock.ts'
import { countRows, rejectionOf, seedEnvironment, seedTrigger } from '../../../support/seed-rows.ts'

const { database } = await testDatabase()
const policy = createEgressPolicy({ allow: '' })
const clock = fastClock()
const deps = {
  secrets: createSecretStore(parseKeyRing(generateKeyRingText('k'))),
  clock,
  findUrlViolation: (url: string) => findUrlViolation(policy, url),
}
const environmentId = await seedEnvironment(database)
const otherTenant = await seedEnvironment(database)
const TARGET = 'https://example.com/hook'

async function create(input: Partial<WebhookInput> = {}) {
  clock.advance(1)
  return await database.transaction((tx) => createWebhook(deps, tx, environmentId, { targetUrl: TARGET, ...input }))
}

async function targetOf(id: string) {
  return await findWebhookTarget(deps, database.pool, environmentId, id)
}

describe('creating a webhook', () => {
  it('stores it active for all events and shows a secret that deliveries are signed with', async () => {
    const { webhook, secret } = await create()
    expect(webhook).toMatchObject({ environmentId, targetUrl: TARGET, eventTypes: [], isActive: true, version: 1 })
    expect(await getWebhook(database.pool, environmentId, webhook.id)).toEqual(webhook)
    expect(await targetOf(webhook.id)).toMatchObject({
      kind: 'ready',
      target: { webhookId: webhook.id, environmentId, url: TARGET, secrets: [secret] },
    })
  })

  it('refuses an address that may not be called and unknown events, all at once, and stores nothing', async () => {
    const before = await listWebhooks(database.pool, environmentId, { before: undefined, limit: 100 })
    const rejection = await rejectionOf(
      create({ targetUrl: 'http://127.0.0.1/', eventTypes: ['record:*', 'nonsense'] }),
    )
    expect(rejection).toEqual({ reason: 'URL_NOT_ALLOWED', fields: ['target_url', 'event_types[1]'] })
    expect(await rejectionOf(create({ eventTypes: ['nonsense'] }))).toEqual({
      reason: 'INVALID_FIELD',
      fields: ['event_types[0]'],
    })
    expect(await listWebhooks(database.pool, environmentId, { before: undefined, limit: 100 })).toEqual(before)
  })

  it('is rejected at 1000 in an environment', async () => {
    const full = await seedEnvironment(database)
    const { webhook } = await database.transaction((tx) => createWebhook(deps, tx, full, { targetUrl: TARGET }))
    await execute(
      database.pool,
      `insert into webhook select (jsonb_populate_record(w, jsonb_build_object('id', gen_random_uuid()))).*
         from webhook w, generate_series(2, 1000) where w.id = :id`,
      { id: webhook.id },
    )
    const another = (environment: string) =>
      database.transaction((tx) => createWebhook(deps, tx, environment, { targetUrl: TARGET }))
    expect(await rejectionOf(another(full))).toMatchObject({ reason: 'LIMIT_REACHED' })
    await database.transaction((tx) =>
      deleteWebhook({ ...deps, triggers: triggerCascade }, tx, full, { id: webhook.id }),
    )
    expect(await another(full)).toMatchObject({ webhook: { environmentId: full } })
  })
})

describe('reading webhooks', () => {
  it('does not tell a foreign id from an unknown one', async () => {
    const { webhook } = await create()
    for (const [environment, id] of [
      [otherTenant, webhook.id],
      [environmentId, newId()],
    ] as const)
      expect((await rejectionOf(getWebhook(database.pool, environment, id))).reason).toBe('RESOURCE_NOT_FOUND')
    expect(await findWebhookTarget(deps, database.pool, otherTenant, webhook.id)).toEqual({ kind: 'missing' })
  })

  it('lists the newest first, below an id, of one environment', async () => {
    const other = await seedEnvironment(database)
    const ids: string[] = []
    for (let count = 0; count < 3; count++) {
      clock.advance(1)
      const { webhook } = await createWebhook(deps, database.pool, other, { targetUrl: TARGET })
      ids.unshift(webhook.id)
    }
    const list = async (before: string | undefined, limit: number) =>
      (await listWebhooks(database.pool, other, { before, limit })).map(({ id }) => id)
    expect(await list(undefined, 10)).toEqual(ids)
    expect(await list(undefined, 2)).toEqual(ids.slice(0, 2))
    expect(await list(ids[1], 10)).toEqual(ids.slice(2))
  })
})

describe('changing a webhook', () => {
  it('changes the given fields alone and counts the version', async () => {
    const { webhook } = await create({ eventTypes: ['record:*'] })
    const changed = await database.transaction((tx) =>
      updateWebhook(deps, tx, environmentId, { id: webhook.id, isActive: false }),
    )
    expect(changed).toMatchObject({ targetUrl: TARGET, eventTypes: ['record:*'], isActive: false, version: 2 })
    expect(await targetOf(webhook.id)).toEqual({ kind: 'inactive' })
    const again = await database.transaction((tx) =>
      updateWebhook(deps, tx, environmentId, {
        id: webhook.id,
        targetUrl: 'https://example.org/',
        eventTypes: [],
        version: 2,
      }),
    )
    expect(again).toMatchObject({ targetUrl: 'https://example.org/', eventTypes: [], isActive: false, version: 3 })
  })

  it('with nothing given changes nothing', async () => {
    const { webhook } = await create()
    expect(await database.transaction((tx) => updateWebhook(deps, tx, environmentId, { id: webhook.id }))).toEqual(
      webhook,
    )
  })

  it.each([
    { name: 'a version that is no longer stored', change: { isActive: false, version: 2 }, reason: 'ETAG_MISMATCH' },
    { name: 'such a version and nothing else', change: { version: 2 }, reason: 'ETAG_MISMATCH' },
    { name: 'an address inside', change: { targetUrl: 'http://10.0.0.1/' }, reason: 'URL_NOT_ALLOWED' },
    { name: 'an unknown event', change: { eventTypes: ['x'] }, reason: 'INVALID_FIELD' },
  ])('is rejected with $name', async ({ change, reason }) => {
    const { webhook } = await create()
    const rejection = await rejectionOf(
      database.transaction((tx) => updateWebhook(deps, tx, environmentId, { id: webhook.id, ...change })),
    )
    expect(rejection.reason).toBe(reason)
    expect(await getWebhook(database.pool, environmentId, webhook.id)).toEqual(webhook)
  })

  it('of another environment is not found', async () => {
    const { webhook } = await create()
    const change = database.transaction((tx) =>
      updateWebhook(deps, tx, otherTenant, { id: webhook.id, isActive: false }),
    )
    expect((await rejectionOf(change)).reason).toBe('RESOURCE_NOT_FOUND')
  })
})

describe('an address of another origin', () => {
  const headers = { 'X-Api-Key': 'old key', 'X-Team': 'old team' }
  it.each([
    ['no headers', undefined, ['headers.x-api-key', 'headers.x-team']],
    ['one of them', { 'x-api-key': 'new key' }, ['headers.x-team']],
    ['the mask of one', { 'x-api-key': '***', 'x-team': '' }, ['headers.x-api-key']],
  ])('is rejected with %s of a webhook with headers', async (_, given, fields) => {
    const { webhook } = await create({ headers })
    const change = { id: webhook.id, targetUrl: 'https://example.org/hook', headers: given }
    expect(await rejectionOf(database.transaction((tx) => updateWebhook(deps, tx, environmentId, change)))).toEqual({
      reason: 'INVALID_FIELD',
      fields,
    })
    expect(await targetOf(webhook.id)).toMatchObject({ target: { url: TARGET, headers: { 'x-api-key': 'old key' } } })
  })

  it('takes every header again, or removes it', async () => {
    const { webhook } = await create({ headers })
    const change = { targetUrl: 'https://example.org/hook', headers: { 'x-api-key': 'new key', 'x-team': '' } }
    await database.transaction((tx) => updateWebhook(deps, tx, environmentId, { id: webhook.id, ...change }))
    expect(await targetOf(webhook.id)).toMatchObject({ target: { headers: { 'x-api-key': 'new key' } } })
  })

  it('is not needed for another path of the same origin', async () => {
    const { webhook } = await create({ headers })
    await database.transaction((tx) =>
      updateWebhook(deps, tx, environmentId, { id: webhook.id, targetUrl: `${TARGET}/2` }),
    )
    expect(await targetOf(webhook.id)).toMatchObject({ target: { url: `${TARGET}/2` } })
  })
})

describe('rotating the secret', () => {
  it('lets the previous one sign beside the new one for 24 hours, and no longer', async () => {
    const { webhook, secret } = await create()
    const rotated = await database.transaction((tx) => rotateWebhookSecret(deps, tx, environmentId, webhook.id))
    expect(rotated.secret).not.toBe(secret)
    const lookup = await targetOf(webhook.id)
    const secrets = lookup.kind === 'ready' ? lookup.target.secrets : []
    expect(secrets).toEqual([rotated.secret, secret])

    const content = { id: 'evt_1', timestampSeconds: Math.floor(Date.now() / 1000), body: Buffer.from('{}') }
    const headers = signatureHeaders(content, secrets)
    for (const each of secrets) expect(new Webhook(each).verify('{}', headers)).toEqual({})

    clock.advance(24 * 3_600_000 - 1_000)
    expect(await targetOf(webhook.id)).toMatchObject({ target: { secrets } })
    clock.advance(1_000)
    expect(await targetOf(webhook.id)).toMatchObject({ target: { secrets: [rotated.secret] } })
  })

  it('five times in a row at once loses no rotation and keeps five secrets at most', async () => {
    const { webhook, secret } = await create()
    const rotate = () => database.transaction((tx) => rotateWebhookSecret(deps, tx, environmentId, webhook.id))
    const rotated = await Promise.all([rotate(), rotate(), rotate(), rotate(), rotate()])
    const lookup = await targetOf(webhook.id)
    const secrets = lookup.kind === 'ready' ? lookup.target.secrets : []
    expect(new Set(secrets)).toEqual(new Set(rotated.map((each) => each.secret)))
    expect(secrets).not.toContain(secret)
  })

  it('of an unknown webhook is not found', async () => {
    const rotation = database.transaction((tx) => rotateWebhookSecret(deps, tx, environmentId, newId()))
    expect((await rejectionOf(rotation)).reason).toBe('RESOURCE_NOT_FOUND')
  })
})

describe('deleting a webhook', () => {
  const remove = (id: string, rest: { force?: boolean; version?: number } = {}, environment = environmentId) =>
    database.transaction((tx) => deleteWebhook({ ...deps, triggers: triggerCascade }, tx, environment, { id, ...rest }))

  it('takes its secrets with it', async () => {
    const { webhook } = await create()
    await remove(webhook.id, { version: 1 })
    expect(await targetOf(webhook.id)).toEqual({ kind: 'missing' })
    const ref = { ownerId: environmentId, subjectType: 'webhook', subjectId: webhook.id } as const
    expect(await deps.secrets.get(database.pool, ref)).toEqual({})
    expect((await rejectionOf(remove(webhook.id))).reason).toBe('RESOURCE_NOT_FOUND')
  })

  it('fails while a trigger sends to it, and with force deletes that trigger and no other', async () => {
    const [{ webhook }, kept] = [await create(), await create()]
    const trigger = await seedTrigger(database, environmentId, { webhookId: webhook.id })
    const other = await seedTrigger(database, environmentId, { webhookId: kept.webhook.id })
    expect((await rejectionOf(remove(webhook.id))).reason).toBe('RESOURCE_IN_USE')
    expect(await getWebhook(database.pool, environmentId, webhook.id)).toEqual(webhook)
    await remove(webhook.id, { force: true })
    expect(await countRows(database, 'sync_job_cron_trigger', trigger)).toBe(0)
    expect(await countRows(database, 'sync_job_cron_trigger', other)).toBe(1)
  })

  it('with an old version, or from another environment, deletes nothing, not even with force', async () => {
    const { webhook } = await create()
    const trigger = await seedTrigger(database, environmentId, { webhookId: webhook.id })
    expect((await rejectionOf(remove(webhook.id, { force: true, version: 9 }))).reason).toBe('ETAG_MISMATCH')
    expect((await rejectionOf(remove(webhook.id, { force: true }, otherTenant))).reason).toBe('RESOURCE_NOT_FOUND')
    expect(await countRows(database, 'sync_job_cron_trigger', trigger)).toBe(1)
  })
})
