import { describe, expect, it } from 'vitest'
import { EnvironmentIntegrationService } from '../../gen/patchbay/v1/environment_integration_service_pb.ts'
import { IntegrationService } from '../../gen/patchbay/v1/integration_service_pb.ts'
import { startTestApp } from '../support/app.ts'
import { statusOver, TIME } from '../support/matchers.ts'
import { createApiTenant, EXAMPLE_CONFIG, freshName, idOf } from '../support/seeded-tenant.ts'

const { createEnvironmentIntegration: install, getEnvironmentIntegration } = EnvironmentIntegrationService.method
const { createIntegration, updateIntegration, getIntegration, listIntegrations } = IntegrationService.method
const {
  createIntegrationGrant: grant,
  listIntegrationGrants,
  deleteIntegrationGrant: revoke,
} = IntegrationService.method

const app = await startTestApp()
const owner = await createApiTenant(app)
const guest = await createApiTenant(app)
const ownersTeam = app.client('connect', { token: owner.teamToken })

async function sharedAs(sharing: string): Promise<string> {
  return await idOf(ownersTeam, createIntegration, { name: freshName('shared'), config: EXAMPLE_CONFIG, sharing })
}

const asOwner = { token: owner.environmentToken }
const asGuest = { token: guest.environmentToken }

describe.each(app.clients({}))('who may install an integration over $wire', (client) => {
  it.each(['allow', 'ask', 'deny'])('its own team always: sharing %s', async (sharing) => {
    await client.ok(install, { integration_id: await sharedAs(sharing) }, asOwner)
  })

  it('everybody when sharing is allow, and the owner’s team is shown', async () => {
    const integrationId = await sharedAs('allow')
    const { integration } = await client.ok(install, { integration_id: integrationId }, asGuest)

    expect(integration).toMatchObject({
      team_id: owner.teamId,
      team: { id: owner.teamId },
      installed_environment: [guest.environmentId],
    })
  })

  it('nobody else when sharing is deny, which looks like an unknown integration', async () => {
    const integrationId = await sharedAs('deny')
    const rejection = await client.callError(install, { integration_id: integrationId }, asGuest)

    expect(rejection).toMatchObject({
      code: 'NOT_FOUND',
      reason: 'RESOURCE_NOT_FOUND',
      resource: { type: 'integration', id: integrationId },
      httpStatus: statusOver(client, 404),
    })
    expect(await client.callError(getIntegration, { id: integrationId }, asGuest)).toMatchObject({ code: 'NOT_FOUND' })
  })

  it('teams with a grant when sharing is ask', async () => {
    const integrationId = await sharedAs('ask')
    const pair = { integration_id: integrationId, team_id: guest.teamId }

    expect(await client.callError(install, { integration_id: integrationId }, asGuest)).toMatchObject({
      code: 'FAILED_PRECONDITION',
      reason: 'INTEGRATION_GRANT_REQUIRED',
      httpStatus: statusOver(client, 400),
    })
    const given = await client.ok(grant, pair, { token: owner.teamToken })
    expect(given).toEqual({ ...pair, created_at: TIME })
    await client.ok(install, { integration_id: integrationId }, asGuest)
  })
})

describe.each(app.clients({ token: owner.teamToken }))('a grant over $wire', (client) => {
  it('given again is the first grant', async () => {
    const pair = { integration_id: await sharedAs('ask'), team_id: guest.teamId }
    expect(await client.ok(grant, pair)).toEqual(await client.ok(grant, pair))
  })

  it('is listed, and gone once taken back; installations made under it stay', async () => {
    const integrationId = await sharedAs('ask')
    const pair = { integration_id: integrationId, team_id: guest.teamId }
    const given = await client.ok(grant, pair)
    const installation = await client.ok(install, { integration_id: integrationId }, asGuest)

    expect(await client.ok(listIntegrationGrants, { integration_id: integrationId })).toEqual({
      integration_grants: [given],
      next_page_token: '',
    })
    expect(await client.ok(revoke, pair)).toEqual({})
    expect(await client.callError(revoke, pair)).toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
    await client.ok(getEnvironmentIntegration, { id: installation.id }, asGuest)
  })

  it('is listed page by page, newest first', async () => {
    const integrationId = await sharedAs('ask')
    const teams = [await createApiTenant(app), await createApiTenant(app), await createApiTenant(app)].map(
      ({ teamId }) => teamId,
    )
    for (const teamId of teams) await client.ok(grant, { integration_id: integrationId, team_id: teamId })

    const seen = []
    let token = ''
    do {
      const page = await client.ok(listIntegrationGrants, {
        integration_id: integrationId,
        page_size: 1,
        page_token: token,
      })
      seen.push(...(page.integration_grants as unknown as { team_id: string }[]).map(({ team_id }) => team_id))
      token = String(page.next_page_token)
    } while (token !== '')
    expect(seen).toEqual(teams.toReversed())
  })

  it('cannot be given by a team that does not own the integration', async () => {
    const pair = { integration_id: await sharedAs('allow'), team_id: guest.teamId }
    expect(await client.callError(grant, pair, { token: guest.teamToken })).toMatchObject({
      reason: 'RESOURCE_NOT_FOUND',
    })
  })
})

describe.each(app.clients(asGuest))('integrations of others over $wire', (client) => {
  it('are listed unless their sharing is deny', async () => {
    const [allowed, asked, denied] = [await sharedAs('allow'), await sharedAs('ask'), await sharedAs('deny')]
    const { integrations } = await client.ok(listIntegrations, { page_size: 1000 })
    const ids = (integrations as unknown as { id: string }[]).map(({ id }) => id)

    expect(ids).toEqual(expect.arrayContaining([allowed, asked]))
    expect(ids).not.toContain(denied)
  })

  it('cannot be changed, and the rejection is that of an unknown one', async () => {
    const id = await sharedAs('allow')
    const rejection = await client.callError(updateIntegration, { id, category: 'mine' }, { token: guest.teamToken })
    expect(rejection).toMatchObject({ code: 'NOT_FOUND', reason: 'RESOURCE_NOT_FOUND' })
  })
})
