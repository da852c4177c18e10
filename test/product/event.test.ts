import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { ApiTokenService } from '../../gen/patchbay/v1/api_token_service_pb.ts'
import { EnvironmentIntegrationService } from '../../gen/patchbay/v1/environment_integration_service_pb.ts'
import { EnvironmentService } from '../../gen/patchbay/v1/environment_service_pb.ts'
import { EventService } from '../../gen/patchbay/v1/event_service_pb.ts'
import { IntegratedAccountService } from '../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { IntegrationService } from '../../gen/patchbay/v1/integration_service_pb.ts'
import { newId } from '../../src/foundation/base/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { appendEvents, examplePayload } from '../../src/platform/outbox/index.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import type { Client } from '../support/client.ts'
import { statusOver, TIME, UUID } from '../support/matchers.ts'
import { createApiEnvironment, EXAMPLE_CONFIG, freshName, idOf, type Tenant } from '../support/seeded-tenant.ts'
import { readOne } from '../support/tenant.ts'

const { getEvent: get, listEvents: list } = EventService.method
const {
  createEnvironmentIntegration: install,
  updateEnvironmentIntegration: change,
  deleteEnvironmentIntegration: uninstall,
} = EnvironmentIntegrationService.method

const app = await startTestApp()
const clients = app.clients()
const admin = app.client('connect', { token: app.first.teamToken })

/** A fresh environment, with a client of each wire. */
async function freshEnvironment(): Promise<Pick<Tenant, 'environmentId' | 'environmentToken'>> {
  return await createApiEnvironment(app, app.first.teamToken)
}

async function freshIntegration(): Promise<string> {
  return await idOf(admin, IntegrationService.method.createIntegration, {
    name: freshName('example'),
    config: EXAMPLE_CONFIG,
  })
}

async function eventsOf(client: Client, filter: JsonObject = {}, token?: string): Promise<readonly JsonObject[]> {
  const sender = token === undefined ? undefined : { token }
  return (await client.ok(list, filter, sender)).events as unknown as readonly JsonObject[]
}

describe.each(inTurn(clients))('the events of an environment over $wire', (client) => {
  it('tell what happened to an installation, newest first, and read back one by one', async () => {
    const { environmentId, environmentToken: token } = await freshEnvironment()
    const integration_id = await freshIntegration()
    const { id } = await client.ok(install, { integration_id, override: { headers: { x: 'secret-value' } } }, { token })
    await client.ok(change, { id, is_enabled: false }, { token })
    await client.ok(uninstall, { id }, { token })

    const events = await eventsOf(client, { subject_id: id }, token)
    const nothing = { changed_paths: [], hosts_added: [], hosts_removed: [], reauthorizes_accounts: false }
    const identity = { id, environment_id: environmentId, integration_id, show_in_catalog: false, is_enabled: false }
    const payload = { ...identity, ...nothing }
    expect(events).toEqual([
      eventOf(environmentId, 'environment_integration:deleted', payload),
      eventOf(environmentId, 'environment_integration:updated', payload),
      eventOf(environmentId, 'environment_integration:created', {
        ...payload,
        is_enabled: true,
        changed_paths: ['headers'],
      }),
    ])
    for (const event of events) expect(await client.ok(get, { id: String(event.id) }, { token })).toEqual(event)
    expect(JSON.stringify(events)).not.toContain('secret-value')
  })

  it('can be filtered by type, and paged', async () => {
    const { environmentToken: token } = await freshEnvironment()
    for (let index = 0; index < 3; index++)
      await client.ok(install, { integration_id: await freshIntegration() }, { token })
    const filter = { type: 'environment_integration:created' }
    const all = await eventsOf(client, filter, token)
    expect(all).toHaveLength(3)
    const first = await client.ok(list, { ...filter, page_size: 2 }, { token })
    const rest = await client.ok(list, { ...filter, page_token: first.next_page_token ?? '' }, { token })
    expect([...(first.events as never as unknown[]), ...(rest.events as never as unknown[])]).toEqual(all)
    expect(await eventsOf(client, { type: 'webhook:disabled' }, token)).toEqual([])
    const wrongQuery = await client.callError(list, { page_token: first.next_page_token ?? '' }, { token })
    expect(wrongQuery.reason).toBe('PAGE_TOKEN_INVALID')
  })

  it('can be filtered by patterns, account and time', async () => {
    const { environmentId, environmentToken: token } = await freshEnvironment()
    const [integratedAccountId, start] = [newId(), Date.now() - 60_000]
    const types = ['record:created', 'record:meta', 'webhook:recovered', 'integrated_account:active'] as const
    const recorded = types.map((type, index) => ({
      environmentId,
      type,
      payload: examplePayload(type),
      id: newId(start + index * 1_000),
      ...(type === 'webhook:recovered' ? {} : { integratedAccountId }),
    }))
    await app.database.transaction((tx) => appendEvents(tx, recorded))
    const at = (index: number) => new Date(start + index * 1_000).toISOString()
    const typesOf = async (filter: JsonObject) => {
      const events = await eventsOf(
        client,
        { types: ['record:*', 'webhook:*', 'integrated_account:active'], ...filter },
        token,
      )
      return events.map(({ type }) => type)
    }
    expect(await typesOf({})).toEqual(types.toReversed())
    expect(await typesOf({ types: ['record:*', 'webhook:recovered'] })).toEqual(types.slice(0, 3).toReversed())
    expect(await typesOf({ types: ['record:*'], type: 'record:meta' })).toEqual(['record:meta'])
    expect(await typesOf({ types: ['record:*'], type: 'webhook:recovered' })).toEqual([])
    expect(await typesOf({ integrated_account_id: integratedAccountId })).toEqual([types[3], types[1], types[0]])
    expect(await typesOf({ since: at(1), until: at(3) })).toEqual([types[2], types[1]])
    const [latest] = await eventsOf(client, { type: types[3] }, token)
    expect(latest?.integrated_account_id).toBe(integratedAccountId)
    for (const [filter, field] of [
      [{ types: ['record:*', 'records:*'] }, 'types[1]'],
      [{ since: at(1), until: at(1) }, 'until'],
    ] as const)
      expect((await client.callError(list, filter, { token })).violations).toMatchObject([{ field }])
  })

  it('are not found by the id of another environment, nor by an unknown one', async () => {
    const [mine, other] = [await freshEnvironment(), await freshEnvironment()]
    await client.ok(install, { integration_id: await freshIntegration() }, { token: other.environmentToken })
    const [theirs] = await eventsOf(client, {}, other.environmentToken)
    for (const id of [String(theirs?.id), newId()]) {
      const error = await client.callError(get, { id }, { token: mine.environmentToken })
      expect(error).toMatchObject({ reason: 'RESOURCE_NOT_FOUND', httpStatus: statusOver(client, 404) })
    }
  })
})

describe('events', () => {
  it('tell of the tokens of the environment, and not of those of the team', async () => {
    const { environmentId, environmentToken: token } = await freshEnvironment()
    const request = { kind: 'environment', environment_id: environmentId, name: 'ci', preset: 'full' }
    const { id, hint } = await admin.ok(ApiTokenService.method.createApiToken, request)
    await admin.ok(ApiTokenService.method.createApiToken, { kind: 'team', name: 'ours', preset: 'full' })
    await admin.ok(ApiTokenService.method.deleteApiToken, { id })
    const events = await eventsOf(admin, {}, token)
    const payload = { id, kind: 'environment', environment_id: environmentId, name: 'ci', hint, expires_at: null }
    expect(events.slice(0, 2)).toEqual([
      eventOf(environmentId, 'api_token:deleted', payload),
      eventOf(environmentId, 'api_token:created', payload),
    ])
    expect(events.map(({ type }) => type)).toEqual(['api_token:deleted', 'api_token:created', 'api_token:created'])
  })

  it('tell of everything that is deleted with an integration, account by account', async () => {
    const { environmentToken: token } = await freshEnvironment()
    const integrationId = await freshIntegration()
    const { id: installationId } = await admin.ok(install, { integration_id: integrationId }, { token })
    const accounts: string[] = []
    for (const tenant_id of ['acme', 'globex']) {
      const request = {
        environment_integration_id: installationId,
        tenant_id,
        credentials: { api_key: 'secret-value' },
      }
      accounts.push(await idOf(admin, IntegratedAccountService.method.createIntegratedAccount, request, { token }))
    }
    await admin.ok(IntegrationService.method.deleteIntegration, { id: integrationId, force: true })
    const deleted = await eventsOf(
      admin,
      { types: ['integrated_account:deleted', 'environment_integration:deleted'] },
      token,
    )
    expect(deleted.map(({ type, subject_id }) => [type, subject_id]).toSorted()).toEqual(
      [
        ...accounts.map((id) => ['integrated_account:deleted', id]),
        ['environment_integration:deleted', installationId],
      ].toSorted(),
    )
    for (const id of accounts)
      expect((await eventsOf(admin, { integrated_account_id: id }, token))[0]?.type).toBe('integrated_account:deleted')
  })

  it('tell nothing of a change that failed, or that changed nothing', async () => {
    const { environmentToken: token } = await freshEnvironment()
    const { id } = await admin.ok(install, { integration_id: await freshIntegration() }, { token })
    await admin.callError(change, { id, is_enabled: false, etag: '"v9"' }, { token })
    await admin.callError(uninstall, { id, etag: '"v9"' }, { token })
    await admin.ok(change, { id }, { token })
    expect((await eventsOf(admin, { subject_id: String(id) }, token)).map(({ type }) => type)).toEqual([
      'environment_integration:created',
    ])
  })

  it('are listed in shorter pages when their payloads are large, and none is left out', async () => {
    const { environmentId, environmentToken: token } = await freshEnvironment()
    const payload = { ...examplePayload('integrated_account:active'), last_error: 'x'.repeat(100_000) }
    const events = Array.from({ length: 5 }, () => ({
      environmentId,
      type: 'integrated_account:active' as const,
      payload,
    }))
    await app.database.transaction((tx) => appendEvents(tx, events))
    const sizes: number[] = []
    for (let page_token = ''; ; ) {
      const page = await admin.ok(list, { type: 'integrated_account:active', page_size: 4, page_token }, { token })
      sizes.push((page.events as unknown as readonly unknown[]).length)
      page_token = String(page.next_page_token ?? '')
      if (page_token === '') break
    }
    expect(sizes).toEqual([2, 2, 1])
  })

  it('are deleted with their environment', async () => {
    const { environmentId, environmentToken: token } = await freshEnvironment()
    await admin.ok(install, { integration_id: await freshIntegration() }, { token })
    await admin.ok(EnvironmentService.method.deleteEnvironment, { id: environmentId, force: true })
    for (const table of ['event', 'event_dispatch']) {
      const count = `select count(*) as count from ${table} where environment_id = :environmentId`
      expect(await readOne(app.database, count, { environmentId })).toEqual({ count: 0 })
    }
  })
})

describe('the documents of events', () => {
  it.each([
    ['/schemas/events.json', 'events.json'],
    ['/asyncapi.json', 'asyncapi.json'],
  ])('are served at %s without a token', async (path, file) => {
    const answer = await fetch(app.url + path)
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/json'])
    expect(await answer.json()).toEqual(JSON.parse(readFileSync(new URL(`../../gen/${file}`, import.meta.url), 'utf8')))
  })
})

function eventOf(environmentId: string, type: string, payload: Readonly<Record<string, unknown>>) {
  return {
    id: UUID,
    environment_id: environmentId,
    type,
    subject_id: payload.id,
    payload,
    created_at: TIME,
    test: false,
  }
}
