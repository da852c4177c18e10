import { describe, expect, it } from 'vitest'
import { TeamService } from '../../gen/patchbay/v1/team_service_pb.ts'
import { startTestApp } from '../support/app.ts'
import { TIME, UUID } from '../support/matchers.ts'

const { createTeam, getTeam, updateTeam } = TeamService.method
const app = await startTestApp()
const clients = app.clients({ token: app.first.teamToken })

describe.each(clients)('creating a team over $wire', (client) => {
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

describe.each(clients)('changing a team over $wire', (client) => {
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
