import { describe, expect, it } from 'vitest'
import { EnvironmentService } from '../../gen/patchbay/v1/environment_service_pb.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import { statusOver, TIME, UUID } from '../support/matchers.ts'
import { createApiEnvironment, createApiTenant, freshName, seedTenant } from '../support/seeded-tenant.ts'

const {
  createEnvironment: create,
  getEnvironment: get,
  updateEnvironment: update,
  deleteEnvironment: remove,
} = EnvironmentService.method

const app = await startTestApp()
const clients = app.clients({ token: app.first.teamToken })

describe.each(inTurn(clients))('creating an environment over $wire', (client) => {
  it('answers with every field, and the same reads back on every wire', async () => {
    const name = freshName('staging')
    const environment = await client.ok(create, { name })

    expect(environment).toEqual({
      id: UUID,
      team_id: app.first.teamId,
      name,
      allow_access_tokens: false,
      branding: { display_name: '', logo_url: '', accent_color: '' },
      created_at: TIME,
      updated_at: environment.created_at,
      etag: '"v1"',
    })
    for (const other of clients) expect(await other.ok(get, { id: environment.id })).toEqual(environment)
  })

  it('under a name that the team has is rejected with its holder', async () => {
    const { id, name } = await client.ok(create, { name: freshName('staging') })

    expect(await client.callError(create, { name: name ?? '' })).toMatchObject({
      code: 'ALREADY_EXISTS',
      reason: 'NAME_TAKEN',
      resource: { type: 'environment', id },
      httpStatus: statusOver(client, 409),
    })
  })

  it('under a name that another team has is fine', async () => {
    const { name } = await client.ok(create, { name: freshName('staging') })
    const other = await createApiTenant(app)
    expect(await client.ok(create, { name: name ?? '' }, { token: other.teamToken })).toMatchObject({ name })
  })

  it('without a name is rejected', async () => {
    const { violations } = await client.callError(create, {})
    expect(violations).toEqual([expect.objectContaining({ field: 'name', rule: 'string.min_len' })])
  })
})

describe.each(inTurn(clients))('renaming an environment over $wire', (client) => {
  it('to a name that the team has is rejected and changes nothing', async () => {
    const taken = await client.ok(create, { name: freshName('taken') })
    const environment = await client.ok(create, { name: freshName('staging') })

    expect(await client.callError(update, { id: environment.id, name: taken.name ?? '' })).toMatchObject({
      reason: 'NAME_TAKEN',
      resource: { type: 'environment', id: taken.id },
    })
    expect(await client.ok(get, { id: environment.id })).toEqual(environment)
  })
})

describe.each(inTurn(clients))('branding an environment over $wire', (client) => {
  const branding = { display_name: 'Acme', logo_url: 'https://acme.example.com/logo.png', accent_color: '#1f5fbf' }

  it('keeps what a change does not name, and removes what it gives as empty', async () => {
    const { id } = await client.ok(create, { name: freshName('branded'), branding })
    const changed = await client.ok(update, { id, branding: { display_name: 'Acme Ltd', logo_url: '' } })
    expect(changed).toMatchObject({ branding: { display_name: 'Acme Ltd', logo_url: '', accent_color: '#1f5fbf' } })
    expect(await client.ok(get, { id })).toEqual(changed)
  })

  it.each([
    ['accent_color', 'blue', 'string.color'],
    ['accent_color', '#1f5fbf80', 'string.color'],
    ['accent_color', '#1f5fb', 'string.color'],
    ['logo_url', 'javascript:alert(1)', 'string.http_url'],
    ['logo_url', 'logo.png', 'string.http_url'],
    ['display_name', 'x'.repeat(121), 'string.max_len'],
  ])('rejects the %s %j and changes nothing', async (field, value, rule) => {
    const environment = await client.ok(create, { name: freshName('branded'), branding })
    const { violations } = await client.callError(update, { id: environment.id, branding: { [field]: value } })
    expect(violations).toEqual([expect.objectContaining({ field: `branding.${field}`, rule })])
    expect(await client.ok(get, { id: environment.id })).toEqual(environment)
  })
})

describe.each(inTurn(clients))('deleting an environment over $wire', (client) => {
  it('in which something is installed is rejected, and with force takes everything along', async () => {
    const tenant = { ...app.first, ...(await createApiEnvironment(app, app.first.teamToken)) }
    const world = await seedTenant(app, tenant)
    const id = world.environmentId

    expect(await client.callError(remove, { id })).toMatchObject({
      code: 'FAILED_PRECONDITION',
      reason: 'RESOURCE_IN_USE',
      resource: { type: 'environment', id },
      httpStatus: statusOver(client, 400),
    })
    await client.ok(get, { id })

    expect(await client.ok(remove, { id, force: true })).toEqual({})
    expect(await client.callError(get, { id })).toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  })
})
