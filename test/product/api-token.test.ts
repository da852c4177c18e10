import { describe, expect, it } from 'vitest'
import { ApiTokenService } from '../../gen/patchbay/v1/api_token_service_pb.ts'
import { EnvironmentService } from '../../gen/patchbay/v1/environment_service_pb.ts'
import { WebhookService } from '../../gen/patchbay/v1/webhook_service_pb.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import { statusOver, TIME, UUID } from '../support/matchers.ts'
import { createApiTenant } from '../support/seeded-tenant.ts'

const {
  createApiToken: create,
  getApiToken: get,
  listApiTokens: list,
  updateApiToken: update,
  revokeApiToken: revoke,
  deleteApiToken: remove,
} = ApiTokenService.method
const { listWebhooks } = WebhookService.method
const { listEnvironments } = EnvironmentService.method

const app = await startTestApp()
const clients = app.clients({ token: app.first.teamToken })
const { teamId, environmentId } = app.first
/** Longer than any process believes what it knows of a token. */

describe.each(inTurn(clients))('making a token over $wire', (client) => {
  it('of an environment shows the secret this once, and it opens that environment', async () => {
    const made = await client.ok(create, {
      kind: 'environment',
      environment_id: environmentId,
      name: 'application',
      preset: 'full',
    })

    expect(made).toEqual({
      id: UUID,
      preset: 'full',
      scopes: ['*'],
      kind: 'environment',
      team_id: teamId,
      environment_id: environmentId,
      name: 'application',
      hint: expect.any(String),
      created_at: TIME,
      updated_at: made.created_at,
      etag: '"v1"',
      token: expect.stringMatching(/^pbe_[0-9A-Za-z]{38}$/),
    })
    await client.ok(listWebhooks, {}, { token: String(made.token) })
  })

  it('of the team opens the team', async () => {
    const made = await client.ok(create, { kind: 'team', name: 'admin', preset: 'full' })

    expect(made).toMatchObject({ kind: 'team', team_id: teamId, token: expect.stringMatching(/^pbt_/) })
    expect(made).not.toHaveProperty('environment_id')
    await client.ok(listEnvironments, {}, { token: String(made.token) })
  })

  it('never shows the secret again, on any wire', async () => {
    const { token, ...made } = await client.ok(create, { kind: 'team', name: 'secret', preset: 'full' })
    for (const other of clients) expect(await other.ok(get, { id: made.id })).toEqual(made)
    for (const answer of [await client.ok(list, {}), await client.ok(update, { id: made.id, name: 'renamed' })])
      expect(JSON.stringify(answer)).not.toContain(token)
  })

  it('of another team is the operator’s alone', async () => {
    const tenant = await createApiTenant(app)
    const other = await createApiTenant(app)
    const request = { kind: 'team', name: 'intruder', preset: 'full', team_id: other.teamId }

    expect(await client.callError(create, request, { token: tenant.teamToken })).toMatchObject({
      code: 'PERMISSION_DENIED',
      reason: 'OPERATOR_TEAM_REQUIRED',
      httpStatus: statusOver(client, 403),
    })
    expect(await client.ok(create, request)).toMatchObject({ team_id: other.teamId })
  })
})

describe.each(inTurn(clients))('a token request that makes no sense over $wire', (client) => {
  it.each([
    { what: 'environment token without environment', request: { kind: 'environment', name: 'x', preset: 'full' } },
    {
      what: 'team token of an environment',
      request: { kind: 'team', name: 'x', preset: 'full', environment_id: environmentId },
    },
    {
      what: 'environment token of a team',
      request: { kind: 'environment', name: 'x', preset: 'full', environment_id: environmentId, team_id: teamId },
    },
    { what: 'neither preset nor scopes', request: { kind: 'team', name: 'x' } },
    { what: 'preset and scopes', request: { kind: 'team', name: 'x', preset: 'read', scopes: ['runs:read'] } },
    { what: 'unknown preset', request: { kind: 'team', name: 'x', preset: 'all' } },
    { what: 'unknown scope', request: { kind: 'team', name: 'x', scopes: ['runs:delete'] } },
    { what: 'unknown kind', request: { kind: 'root', name: 'x', preset: 'full' } },
    {
      what: 'expiry in the past',
      request: { kind: 'team', name: 'x', preset: 'full', expires_at: '2020-01-01T00:00:00Z' },
    },
  ])('is rejected: $what', async ({ request }) => {
    const rejection = await client.callError(create, request)
    expect(rejection).toMatchObject({
      code: 'INVALID_ARGUMENT',
      reason: 'INVALID_FIELD',
      httpStatus: statusOver(client, 400),
    })
    expect(rejection.violations).toHaveLength(1)
  })
})

describe.each(inTurn(clients))('changing a token over $wire', (client) => {
  it('renames it and moves its expiry, to the millisecond', async () => {
    const { token: _, ...before } = await client.ok(create, { kind: 'team', name: 'before', preset: 'full' })
    const expiresAt = '2099-01-02T03:04:05.678Z'

    const after = await client.ok(update, { id: before.id, name: 'after', expires_at: expiresAt })

    expect(after).toEqual({ ...before, name: 'after', expires_at: expiresAt, updated_at: TIME, etag: '"v2"' })
  })
})

describe.each(inTurn(clients))('revoking a token over $wire', (client) => {
  it('keeps it listed, and again keeps the first moment', async () => {
    const { id } = await client.ok(create, { kind: 'team', name: 'leaked', preset: 'full' })

    const revoked = await client.ok(revoke, { id })

    expect(revoked).toMatchObject({ id, revoked_at: TIME, etag: '"v2"' })
    expect(await client.ok(revoke, { id })).toEqual(revoked)
    expect(await client.ok(get, { id })).toEqual(revoked)
  })

  it('ends it, also where it is cached', async () => {
    const { id, token } = await client.ok(create, { kind: 'team', name: 'leaked', preset: 'full' })
    await client.ok(listEnvironments, {}, { token: String(token) })
    await client.ok(revoke, { id })

    await expect.poll(async () => (await client.send(listEnvironments, {}, { token: String(token) })).ok).toBe(false)
    expect(await client.callError(listEnvironments, {}, { token: String(token) })).toMatchObject({
      code: 'UNAUTHENTICATED',
      reason: 'TOKEN_INVALID',
    })
  })
})

describe.each(inTurn(clients))('deleting a token over $wire', (client) => {
  it('forgets it', async () => {
    const { id } = await client.ok(create, { kind: 'team', name: 'old', preset: 'full' })

    expect(await client.ok(remove, { id })).toEqual({})
    expect(await client.callError(get, { id })).toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  })
})
