import { describe, expect, it } from 'vitest'
import { newId } from '../../src/foundation/base/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { overWire } from '../support/case-count.ts'
import { KINDS, tokenFor } from '../support/operations.ts'
import { createApiEnvironment, createApiTenant, seedTenant, type Tenant } from '../support/seeded-tenant.ts'
import {
  addHeldRun,
  addHistory,
  compareForeign,
  idLocations,
  isOfEnvironment,
  sendAs,
  type TenancyFixture,
} from '../support/tenancy-matrix.ts'

const app = await startTestApp()
const tenant = await createApiTenant(app)
const own = await worldOf(tenant)
/** Another environment of the same team. */
const sibling = await worldOf({ ...tenant, ...(await createApiEnvironment(app, tenant.teamToken)) })
/** Another team. */
const foreign = await worldOf(await createApiTenant(app))

async function worldOf(of: Tenant): Promise<TenancyFixture> {
  const made = await addHeldRun(app.client('connect', { token: of.environmentToken }), await seedTenant(app, of))
  return { ...made, ...(await addHistory(app.database, made)) }
}

/** Everything the other tenant can read of its own. */
/** All lists of a tenant, without what reading them changes: when its tokens were last used. */
async function everythingOf(world: TenancyFixture) {
  const client = app.client('connect')
  const lists = await Promise.all(
    KINDS.map(async (kind) => await client.ok(kind.list, { page_size: 1000 }, { token: tokenFor(kind, world) })),
  )
  return JSON.parse(JSON.stringify(lists, (key, value) => (key === 'last_used_at' ? undefined : value)))
}

describe.each(app.clients({}))('an id of another tenant over $wire', (client) => {
  const environmentHeaders = { authorization: `Bearer ${own.environmentToken}` }
  const teamHeaders = { authorization: `Bearer ${own.teamToken}`, 'patchbay-environment': own.environmentId }

  it.each(overWire(client, idLocations().filter(isOfEnvironment)))(
    'of the same team is answered like an unknown one: $name',
    async (place) => {
      expect(await compareForeign(sendAs(client, app.url, environmentHeaders), place, own, sibling)).toBeUndefined()
    },
  )

  it.each(overWire(client, idLocations()))('of another team is answered like an unknown one: $name', async (place) => {
    expect(await compareForeign(sendAs(client, app.url, teamHeaders), place, own, foreign)).toBeUndefined()
  })
})

/** Teams are made by the operator alone, whom no team is a secret to. */
const TENANTS_KINDS = KINDS.filter(({ noun }) => noun !== 'team')

describe.each(TENANTS_KINDS)('$noun', (kind) => {
  const client = app.client('rest')
  const as = (world: TenancyFixture) => ({ token: tokenFor(kind, world) })
  const make = async (world: TenancyFixture, fields: JsonObject = {}) =>
    await client.ok(
      kind.create,
      { ...(await kind.createRequest(world, app.client('rest', { token: world.teamToken }))), ...fields },
      as(world),
    )
  const idsIn = (answer: JsonObject) => (answer[kind.items] as readonly JsonObject[]).map(({ id }) => id)

  it('a page token of another tenant shows nothing of it', async () => {
    await make(foreign)
    await make(foreign)
    const { next_page_token: page_token = '', ...first } = await client.ok(kind.list, { page_size: 1 }, as(foreign))
    const theirs = idsIn(await client.ok(kind.list, { page_size: 1000 }, as(foreign)))
    expect(idsIn(first)).toHaveLength(1)
    const outcome = await client.send(kind.list, { page_size: 1, page_token }, as(own))
    for (const id of theirs) expect(JSON.stringify(outcome)).not.toContain(id)
  })

  it('a request_id that another tenant used creates anew', async () => {
    const request_id = newId()
    const theirs = await make(foreign, { request_id })
    const ours = await make(own, { request_id })
    expect(ours.id).not.toBe(theirs.id)
    expect(JSON.stringify(ours)).not.toContain(theirs.id)
  })

  it('the etag of another tenant opens nothing', async () => {
    if (kind.update === undefined) return expect(['sync_job_run', 'link_token']).toContain(kind.noun)
    const { method, change } = kind.update
    const { id, etag } = await make(foreign)
    const unknown = newId()
    const refused = async (of: string) =>
      JSON.stringify(await client.callError(method, { id: of, etag, ...change() }, as(own))).replaceAll(of, '<id>')
    expect(await refused(id)).toBe(await refused(unknown))
  })
})

it('nothing of what was asked for changed the other tenants', async () => {
  const before = [await everythingOf(sibling), await everythingOf(foreign)]
  const client = app.client('connect', {})
  const headers = { authorization: `Bearer ${own.teamToken}`, 'patchbay-environment': own.environmentId }
  for (const place of idLocations()) await compareForeign(sendAs(client, app.url, headers), place, own, foreign)
  for (const place of idLocations().filter(isOfEnvironment))
    await compareForeign(sendAs(client, app.url, headers), place, own, sibling)
  expect([await everythingOf(sibling), await everythingOf(foreign)]).toEqual(before)
})
