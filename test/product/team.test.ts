import { describe, expect, it } from 'vitest'
import { TeamService } from '../../gen/patchbay/v1/team_service_pb.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import { statusOver, TIME, UUID } from '../support/matchers.ts'
import { createApiTenant, seedTenant } from '../support/seeded-tenant.ts'

const { createTeam, getTeam, listTeams, updateTeam, deleteTeam } = TeamService.method
const app = await startTestApp()
const clients = app.clients({ token: app.first.teamToken })

describe.each(inTurn(clients))('creating a team over $wire', (client) => {
  it('answers with every field of the specification, and the same reads back on every wire', async () => {
    const team = await client.ok(createTeam, {
      name: 'Acme',
      domain: 'acme.example',
      logo: 'https://acme.example/logo.png',
      is_white_label: true,
      tos_link: 'https://acme.example/terms',
      allow_impersonation: true,
    })

    expect(team).toEqual({
      id: UUID,
      name: 'Acme',
      domain: 'acme.example',
      logo: 'https://acme.example/logo.png',
      is_verified: false,
      is_white_label: true,
      tos_link: 'https://acme.example/terms',
      allow_impersonation: true,
      created_at: TIME,
      updated_at: team.created_at,
      etag: '"v1"',
    })
    for (const other of clients) expect(await other.ok(getTeam, { id: team.id })).toEqual(team)
  })

  it('needs a name alone, and leaves the terms of service out when there are none', async () => {
    const team = await client.ok(createTeam, { name: 'Bare' })

    expect(team).toEqual({
      id: UUID,
      name: 'Bare',
      domain: '',
      logo: '',
      is_verified: false,
      is_white_label: false,
      allow_impersonation: false,
      created_at: TIME,
      updated_at: TIME,
      etag: '"v1"',
    })
  })
})

describe.each(inTurn(clients))('changing a team over $wire', (client) => {
  it('keeps what is not given, and an empty text removes', async () => {
    const before = await client.ok(createTeam, {
      name: 'Before',
      domain: 'before.example',
      tos_link: 'https://b.example',
    })

    const after = await client.ok(updateTeam, { id: before.id, name: 'After', tos_link: '' })

    const { tos_link: _, ...kept } = before
    expect(after).toEqual({ ...kept, name: 'After', updated_at: TIME, etag: '"v2"' })
  })
})

describe.each(inTurn(clients))('a team that is not the operator’s over $wire', (client) => {
  const operatorRequired = {
    code: 'PERMISSION_DENIED',
    reason: 'OPERATOR_TEAM_REQUIRED',
    httpStatus: statusOver(client, 403),
  }

  it('neither creates nor deletes teams, not even itself', async () => {
    const { teamId, teamToken: token } = await createApiTenant(app)

    expect(await client.callError(createTeam, { name: 'Mine' }, { token })).toMatchObject(operatorRequired)
    expect(await client.callError(deleteTeam, { id: teamId }, { token })).toMatchObject(operatorRequired)
  })

  it('sees and changes itself alone', async () => {
    const { teamId, teamToken: token } = await createApiTenant(app)

    const changed = await client.ok(updateTeam, { id: teamId, name: 'Renamed' }, { token })

    expect(await client.ok(listTeams, {}, { token })).toEqual({ teams: [changed], next_page_token: '' })
    for (const method of [getTeam, updateTeam])
      expect(await client.callError(method, { id: app.first.teamId }, { token })).toMatchObject({ code: 'NOT_FOUND' })
  })
})

describe.each(inTurn(clients))('deleting a team over $wire', (client) => {
  it('that owns something is rejected, and with force takes everything along', async () => {
    const world = await seedTenant(app, await createApiTenant(app))
    const id = world.teamId

    expect(await client.callError(deleteTeam, { id })).toMatchObject({
      code: 'FAILED_PRECONDITION',
      reason: 'RESOURCE_IN_USE',
      resource: { type: 'team', id },
      httpStatus: statusOver(client, 400),
    })
    expect(await client.ok(deleteTeam, { id, force: true })).toEqual({})
    expect(await client.callError(getTeam, { id })).toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  })

  it('that is the operator’s is always refused', async () => {
    const rejection = await client.callError(deleteTeam, { id: app.first.teamId, force: true })
    expect(rejection).toMatchObject({ code: 'FAILED_PRECONDITION', reason: 'RESOURCE_IN_USE' })
  })
})
