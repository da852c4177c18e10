import { describe, expect, it } from 'vitest'
import { IntegratedAccountService } from '../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { WebhookService } from '../../gen/patchbay/v1/webhook_service_pb.ts'
import { encodePageToken } from '../../src/foundation/database/keyset-pages.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { overWire } from '../support/case-count.ts'
import type { Client } from '../support/client.ts'
import { KINDS, type ResourceKind, tokenFor } from '../support/operations.ts'
import { createApiEnvironment, seedTenant } from '../support/seeded-tenant.ts'

const app = await startTestApp()
const world = await seedTenant(app, app.first)
const admin = app.client('connect', { token: world.teamToken })
const clients = app.clients({})

async function make(kind: ResourceKind): Promise<string> {
  return (await admin.ok(kind.create, await kind.createRequest(world, admin), { token: tokenFor(kind, world) })).id
}

async function page(client: Client, kind: ResourceKind, request: JsonObject = {}) {
  const answer = await client.ok(kind.list, request, { token: tokenFor(kind, world) })
  const items = answer[kind.items]
  if (!Array.isArray(items)) throw new Error(`${kind.items} is no list`)
  return { ids: items.map((item: JsonObject) => String(item.id)), items, next: String(answer.next_page_token) }
}

/** Ids of all pages of a size, in order; `between` runs after every page. */
async function walk(client: Client, kind: ResourceKind, pageSize: number, between?: () => Promise<unknown>) {
  const ids: string[] = []
  let token = ''
  do {
    const { ids: some, next } = await page(client, kind, { page_size: pageSize, page_token: token })
    ids.push(...some)
    token = next
    await between?.()
  } while (token !== '')
  return ids
}

const tokenInvalid = (client: Client) => ({
  code: 'INVALID_ARGUMENT',
  reason: 'PAGE_TOKEN_INVALID',
  violations: [expect.objectContaining({ field: 'page_token' })],
  ...(client.wire === 'grpc' ? {} : { httpStatus: 400 }),
})

describe('a list', () => {
  it.each(KINDS)('is newest first and the same on every wire: $noun', async (kind) => {
    const made = [await make(kind), await make(kind), await make(kind)]
    const [first, ...others] = await Promise.all(clients.map((client) => page(client, kind)))

    expect(first!.ids.slice(0, 3)).toEqual(made.toReversed())
    for (const other of others) expect(other).toEqual(first)
  })

  it.each(KINDS)('shows a resource as Get does, its integration without the config: $noun', async (kind) => {
    const id = await make(kind)
    const [listed] = (await page(admin, kind)).items
    const got: JsonObject = await admin.ok(kind.get, { id }, { token: tokenFor(kind, world) })
    const { integration, config: _, ...rest } = got
    if (integration === undefined) return expect(listed).toEqual(kind.noun === 'integration' ? rest : got)
    const { config: __, ...basic } = integration as JsonObject
    expect(listed).toEqual({ ...rest, integration: basic })
  })
})

describe.each(clients)('walking a list over $wire', (client) => {
  it.each(overWire(client, KINDS))('shows everything there was once, while others insert: $noun', async (kind) => {
    const made = new Set([await make(kind), await make(kind), await make(kind), await make(kind), await make(kind)])
    const before = await walk(admin, kind, 1000)

    const seen = await walk(client, kind, 2, () => make(kind))

    expect(new Set(seen).size).toBe(seen.length)
    expect(seen).toEqual(before)
    expect(seen.filter((id) => made.has(id))).toHaveLength(made.size)
  })
})

describe.each(clients)('the page size over $wire', (client) => {
  const kind = KINDS.find(({ noun }) => noun === 'webhook')!

  it('is 50 unless given, and a larger one than 1000 is 1000', async () => {
    const other = await createApiEnvironment(app, world.teamToken)
    const token = other.environmentToken
    const { createWebhook, listWebhooks } = WebhookService.method
    for (let made = 0; made < 51; made++)
      await admin.ok(createWebhook, { target_url: `https://a.example/${made}` }, { token })
    const sizeOf = async (request: JsonObject) => {
      const { webhooks, next_page_token } = await client.ok(listWebhooks, request, { token })
      return { size: Array.isArray(webhooks) && webhooks.length, isLast: next_page_token === '' }
    }

    expect(await sizeOf({})).toEqual({ size: 50, isLast: false })
    expect(await sizeOf({ page_size: 0 })).toEqual({ size: 50, isLast: false })
    expect(await sizeOf({ page_size: 51 })).toEqual({ size: 51, isLast: true })
    expect(await sizeOf({ page_size: 2_000_000_000 })).toEqual({ size: 51, isLast: true })
  })

  it('must not be negative', async () => {
    const rejection = await client.callError(kind.list, { page_size: -1 }, { token: world.environmentToken })
    expect(rejection).toMatchObject({ code: 'INVALID_ARGUMENT', reason: 'INVALID_FIELD' })
    expect(rejection.violations).toEqual([expect.objectContaining({ field: 'page_size', rule: 'int32.gte' })])
  })
})

describe.each(clients)('a page token over $wire', (client) => {
  it.each(overWire(client, KINDS))('that is none of the list is rejected: $noun', async (kind) => {
    const forged = ['x', '!', 'AAAAAAAAAAAAAAAA', encodePageToken({ list: 'other' }, ['not-a-uuid'])]
    for (const token of forged)
      expect(await client.callError(kind.list, { page_token: token }, { token: tokenFor(kind, world) })).toMatchObject(
        tokenInvalid(client),
      )
  })

  it('is good for its own filters alone', async () => {
    const { listIntegratedAccounts } = IntegratedAccountService.method
    const kind = KINDS.find(({ noun }) => noun === 'integrated_account')!
    await make(kind)
    await make(kind)
    const { next } = await page(client, kind, { page_size: 1, status: 'active' })
    const ask = (request: JsonObject) =>
      client.send(listIntegratedAccounts, { ...request, page_token: next }, { token: world.environmentToken })

    expect(await ask({ status: 'active' })).toMatchObject({ ok: true })
    for (const filter of [{}, { status: 'connecting' }, { status: 'active', region: 'wnam' }])
      expect(await ask(filter)).toMatchObject({ ok: false, error: tokenInvalid(client) })
  })

  it('is good for its own environment alone', async () => {
    const kind = KINDS.find(({ noun }) => noun === 'webhook')!
    await make(kind)
    await make(kind)
    const { next } = await page(client, kind, { page_size: 1 })
    const other = await createApiEnvironment(app, world.teamToken)

    expect(await client.callError(kind.list, { page_token: next }, { token: other.environmentToken })).toMatchObject(
      tokenInvalid(client),
    )
  })
})
