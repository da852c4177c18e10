import { describe, expect, it } from 'vitest'
import { newId } from '../../src/foundation/base/index.ts'
import { startTestApp } from '../support/app.ts'
import { overWire } from '../support/case-count.ts'
import type { Client } from '../support/client.ts'
import { KINDS, type ResourceKind, tokenFor } from '../support/operations.ts'
import { seedTenant } from '../support/seeded-tenant.ts'

const app = await startTestApp()
const world = await seedTenant(app, app.first)
const admin = app.client('connect', { token: world.teamToken })

const updatable = KINDS.filter((kind) => kind.update !== undefined)

/** Makes one of the kind and returns how it reads. */
async function make(kind: ResourceKind, client: Client) {
  const made = await client.ok(kind.create, await kind.createRequest(world, admin), { token: tokenFor(kind, world) })
  return await read(kind, client, made.id)
}

async function read(kind: ResourceKind, client: Client, id: string) {
  return await client.ok(kind.get, { id }, { token: tokenFor(kind, world) })
}

const mismatch = (client: Client, { noun }: ResourceKind, id: string) => ({
  code: 'ABORTED',
  reason: 'ETAG_MISMATCH',
  resource: { type: noun, id },
  ...(client.wire === 'grpc' ? {} : { httpStatus: 409 }),
})

describe.each(app.clients({}))('an update that names the current etag over $wire', (client) => {
  it.each(overWire(client, updatable))('is made, and changes the etag: $noun', async (kind) => {
    const { id, etag } = await make(kind, client)
    const change = kind.update!.change()
    const changed = await client.ok(kind.update!.method, { id, etag, ...change }, { token: tokenFor(kind, world) })

    expect(changed).toMatchObject(change)
    expect(changed.etag).not.toBe(etag)
    expect(await read(kind, client, id)).toEqual(changed)
  })
})

describe.each(app.clients({}))('an update that names another etag over $wire', (client) => {
  it.each(overWire(client, updatable))('is rejected and changes nothing: $noun', async (kind) => {
    const before = await make(kind, client)
    const { id } = before

    for (const etag of ['"v7"', '"0"', 'not an etag of ours', ''])
      expect(
        await client.callError(
          kind.update!.method,
          { id, etag, ...kind.update!.change() },
          { token: tokenFor(kind, world) },
        ),
      ).toMatchObject(mismatch(client, kind, id))
    expect(await read(kind, client, id)).toEqual(before)
  })

  it.each(overWire(client, updatable))('is rejected also when it would change nothing: $noun', async (kind) => {
    const { id } = await make(kind, client)

    expect(
      await client.callError(kind.update!.method, { id, etag: '"v7"' }, { token: tokenFor(kind, world) }),
    ).toMatchObject(mismatch(client, kind, id))
  })
})

describe.each(app.clients({}))('an update without a field to change over $wire', (client) => {
  it.each(overWire(client, updatable))('answers with the resource as it is: $noun', async (kind) => {
    const before = await make(kind, client)

    expect(await client.ok(kind.update!.method, { id: before.id }, { token: tokenFor(kind, world) })).toEqual(before)
    expect(
      await client.ok(kind.update!.method, { id: before.id, etag: before.etag }, { token: tokenFor(kind, world) }),
    ).toEqual(before)
  })
})

describe('updates that saw the same etag', () => {
  it.each(updatable)('do not succeed together: $noun', async (kind) => {
    const { id, etag } = await make(kind, admin)
    const update = (client: Client) => client.send(kind.update!.method, { id, etag, ...kind.update!.change() })

    const outcomes = await Promise.all(app.clients({ token: tokenFor(kind, world) }).map(update))

    expect(outcomes.filter(({ ok }) => ok)).toHaveLength(1)
    expect(outcomes.filter((outcome) => !outcome.ok && outcome.error.reason === 'ETAG_MISMATCH')).toHaveLength(2)
  })
})

describe('the header If-Match of REST', () => {
  const rest = app.client('rest', {})
  const update = (kind: ResourceKind, id: string, ifMatch: string) =>
    rest.send(
      kind.update!.method,
      { id: id, ...kind.update!.change() },
      {
        token: tokenFor(kind, world),
        headers: { 'if-match': ifMatch },
      },
    )

  it.each(updatable)('stands for the etag: $noun', async (kind) => {
    const { id, etag } = await make(kind, rest)

    expect(await update(kind, id, '"v9"')).toMatchObject({ ok: false, error: mismatch(rest, kind, id) })
    expect(await update(kind, id, etag)).toMatchObject({ ok: true })
    expect(await update(kind, id, etag)).toMatchObject({ ok: false, error: mismatch(rest, kind, id) })
  })

  it('may be weak, and a star matches any version', async () => {
    const kind = updatable.find(({ noun }) => noun === 'webhook')!
    const { id, etag } = await make(kind, rest)

    expect(await update(kind, id, `W/${etag}`)).toMatchObject({ ok: true })
    expect(await update(kind, id, '*')).toMatchObject({ ok: true })
  })
})

describe.each(app.clients({}))('a deletion that names an etag over $wire', (client) => {
  const deletable = KINDS.filter((kind) => kind.delete !== undefined)

  it.each(overWire(client, deletable))('happens only in that version, and once: $noun', async (kind) => {
    const { id, etag } = await make(kind, client)
    const remove = (version: string) =>
      client.send(kind.delete!, { id: id, etag: version }, { token: tokenFor(kind, world) })

    expect(await remove('"v7"')).toMatchObject({ ok: false, error: mismatch(client, kind, id) })
    expect(await remove(etag)).toMatchObject({ ok: true, json: {} })
    expect(await remove(etag)).toMatchObject({ ok: false, error: { reason: 'RESOURCE_NOT_FOUND' } })
  })

  it.each(overWire(client, deletable))('of something unknown is not found: $noun', async (kind) => {
    const rejection = await client.callError(kind.delete!, { id: newId() }, { token: tokenFor(kind, world) })
    expect(rejection).toMatchObject({ code: 'NOT_FOUND', reason: 'RESOURCE_NOT_FOUND' })
  })
})
