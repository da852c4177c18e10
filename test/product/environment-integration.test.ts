import { beforeAll, describe, expect, it } from 'vitest'
import { EnvironmentIntegrationService } from '../../gen/patchbay/v1/environment_integration_service_pb.ts'
import { IntegratedAccountService } from '../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { IntegrationService } from '../../gen/patchbay/v1/integration_service_pb.ts'
import { newId } from '../../src/foundation/base/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import type { Client } from '../support/client.ts'
import { statusOver, TIME, UUID } from '../support/matchers.ts'
import {
  createApiEnvironment,
  createApiTenant,
  EXAMPLE_CONFIG,
  freshName,
  idOf,
  seedTenant,
  type Tenant,
} from '../support/seeded-tenant.ts'

const {
  createEnvironmentIntegration: create,
  getEnvironmentIntegration: get,
  listEnvironmentIntegrations: list,
  updateEnvironmentIntegration: update,
  deleteEnvironmentIntegration: remove,
  resolveEnvironmentIntegration: resolve,
} = EnvironmentIntegrationService.method

const app = await startTestApp()
const clients = app.clients()
const admin = app.client('connect', { token: app.first.teamToken })
const { teamId, environmentId } = app.first

/** An integration that is not installed anywhere. */
async function freshIntegration(fields: JsonObject = {}): Promise<string> {
  const request = { name: freshName('example'), config: EXAMPLE_CONFIG, ...fields }
  return await idOf(admin, IntegrationService.method.createIntegration, request)
}

async function install(client: Client, fields: JsonObject = {}) {
  return await client.ok(create, { integration_id: await freshIntegration(), ...fields })
}

async function countInstalled(): Promise<number> {
  const { environment_integrations } = await admin.ok(list, { page_size: 1000 }, { token: app.first.environmentToken })
  return Array.isArray(environment_integrations) ? environment_integrations.length : Number.NaN
}

describe.each(inTurn(clients))('installing an integration over $wire', (client) => {
  it('answers with every field of the specification, and the same reads back on every wire', async () => {
    const name = freshName('example')
    const integrationId = await freshIntegration({ name, category: 'crm', is_beta: true, sharing: 'ask' })
    const override = {
      base_url: 'https://eu.example.com',
      tags: ['crm'],
      environment_variables: { REGION: 'eu', N: 1 },
    }

    const installation = await client.ok(create, {
      integration_id: integrationId,
      show_in_catalog: true,
      is_enabled: false,
      override,
    })

    expect(installation).toEqual({
      id: UUID,
      integration_id: integrationId,
      environment_id: environmentId,
      show_in_catalog: true,
      is_enabled: false,
      created_at: TIME,
      updated_at: installation.created_at,
      override,
      etag: '"v1"',
      integration: {
        id: integrationId,
        name,
        category: 'crm',
        is_beta: true,
        config: EXAMPLE_CONFIG,
        team_id: teamId,
        sharing: 'ask',
        created_at: TIME,
        updated_at: TIME,
        etag: '"v1"',
        installed_environment: [environmentId],
        team: {
          id: teamId,
          name: 'operator',
          domain: '',
          logo: '',
          is_verified: false,
          is_white_label: false,
          allow_impersonation: false,
          created_at: TIME,
          updated_at: TIME,
          etag: '"v1"',
        },
      },
    })
    for (const other of clients) expect(await other.ok(get, { id: installation.id })).toEqual(installation)
  })

  it('needs the integration alone: hidden from the catalog, enabled, nothing overridden', async () => {
    expect(await install(client)).toMatchObject({ show_in_catalog: false, is_enabled: true, override: {} })
  })

  it('takes place in the environment that a team token names', async () => {
    const other = await createApiEnvironment(app, app.first.teamToken)
    const sender = { token: app.first.teamToken, environment: other.environmentId }
    const installation = await client.ok(create, { integration_id: await freshIntegration() }, sender)

    expect(installation.environment_id).toBe(other.environmentId)
  })

  it('stores the override as given, null included', async () => {
    const override = { pagination: null, resources: { issues: { list: { pagination: null } } } }
    expect((await install(client, { override })).override).toEqual(override)
  })

  it('installs one integration in two environments, and the integration names both', async () => {
    const integrationId = await freshIntegration()
    const other = await createApiEnvironment(app, app.first.teamToken)
    await client.ok(create, { integration_id: integrationId })

    const { integration } = await client.ok(
      create,
      { integration_id: integrationId },
      { token: other.environmentToken },
    )

    expect(integration).toMatchObject({ installed_environment: [environmentId, other.environmentId] })
  })
})

describe.each(inTurn(clients))('installing twice over $wire', (client) => {
  it('answers the installation there is, as it is, when nothing else is asked for', async () => {
    const { integration, ...installation } = await install(client, { override: { label: 'Ours' }, is_enabled: false })
    const integration_id = installation.integration_id ?? ''
    for (const request of [{ integration_id }, { integration_id, override: { label: 'Ours' }, is_enabled: false }])
      expect(await client.ok(create, request)).toEqual({ ...installation, integration })
  })

  it('is rejected with the id of the installation there is when it asks for something else', async () => {
    const { id, integration_id } = await install(client)

    const rejection = await client.callError(create, { integration_id: integration_id ?? '', is_enabled: false })

    expect(rejection).toMatchObject({
      code: 'ALREADY_EXISTS',
      reason: 'ALREADY_INSTALLED',
      resource: { type: 'environment_integration', id },
      httpStatus: statusOver(client, 409),
    })
    expect(await client.ok(get, { id })).toMatchObject({ is_enabled: true, etag: '"v1"' })
  })

  it('answers the first installation again when it repeats the request_id', async () => {
    const request = { integration_id: await freshIntegration(), request_id: newId() }
    expect(await client.ok(create, request)).toEqual(await client.ok(create, request))
  })
})

describe.each(inTurn(clients))('an override that breaks the vocabulary over $wire', (client) => {
  const broken: JsonObject = {
    base_url: 7,
    lable: 'typo',
    resources: { issues: { list: { method: 'fetch', path: 5 } } },
    pagination: { format: 'pages' },
  }

  it('is rejected with every finding at its JSON path, and nothing is stored', async () => {
    const integrationId = await freshIntegration()
    const before = await countInstalled()

    const rejection = await client.callError(create, { integration_id: integrationId, override: broken })

    expect(rejection).toMatchObject({
      code: 'INVALID_ARGUMENT',
      reason: 'DEFINITION_INVALID',
      httpStatus: statusOver(client, 400),
    })
    expect(rejection.violations.map(({ field }) => field).toSorted()).toEqual([
      'override.base_url',
      'override.lable',
      'override.pagination.format',
      'override.resources.issues.list.method',
      'override.resources.issues.list.path',
    ])
    expect(await countInstalled()).toBe(before)
    await client.ok(create, { integration_id: integrationId })
  })

  it('suggests the key that was probably meant', async () => {
    const { violations } = await client.callError(create, {
      integration_id: await freshIntegration(),
      override: { lable: 'x' },
    })
    expect(violations[0]?.description).toContain('label')
  })

  it('is rejected by an update too, which then changes nothing', async () => {
    const before = await install(client, { override: { label: 'Kept' } })

    const rejection = await client.callError(update, { id: before.id, is_enabled: false, override: broken })

    expect(rejection.reason).toBe('DEFINITION_INVALID')
    expect(await client.ok(get, { id: before.id })).toEqual(before)
  })
})

describe.each(inTurn(clients))('an override that leads to an address that may not be called over $wire', (client) => {
  it.each(['http://127.0.0.1/', 'http://169.254.169.254/latest', 'ftp://files.example.com', 'http://[::1]:8080'])(
    'is refused: %s',
    async (baseUrl) => {
      const rejection = await client.callError(create, {
        integration_id: await freshIntegration(),
        override: { base_url: baseUrl },
      })

      expect(rejection).toMatchObject({ code: 'INVALID_ARGUMENT', httpStatus: statusOver(client, 400) })
      expect(['URL_NOT_ALLOWED', 'DEFINITION_INVALID']).toContain(rejection.reason)
      expect(rejection.violations).toEqual([expect.objectContaining({ field: 'override.base_url' })])
    },
  )
})

describe.each(inTurn(clients))('secrets in an override over $wire', (client) => {
  const oauth2 = {
    config: {
      client: { id: 'public-id', secret: 'planted-client-secret' },
      auth: { tokenHost: 'https://auth.example.com', tokenPath: '/token' },
    },
  }

  it('are shown as *** in every answer', async () => {
    const installation = await install(client, { override: { credentials: { oauth2 } } })
    const answers = [
      installation,
      await client.ok(get, { id: installation.id }),
      await client.ok(update, { id: installation.id, is_enabled: false }),
      await client.ok(list, {}),
      await client.ok(resolve, { id: installation.id }),
    ]

    for (const answer of answers) expect(JSON.stringify(answer)).not.toContain('planted-client-secret')
    expect(installation.override).toMatchObject({
      credentials: { oauth2: { config: { client: { id: 'public-id', secret: '***' } } } },
    })
  })

  it('keep their value when the mask is sent back in their place', async () => {
    const { id, override } = await install(client, { override: { credentials: { oauth2 } } })
    const changed = await client.ok(update, { id, override: override ?? {}, replace_override: true })
    expect(changed.override).toEqual(override)
  })

  it('cannot be set to the mask where none is stored', async () => {
    const masked = { credentials: { oauth2: { config: { ...oauth2.config, client: { id: 'x', secret: '***' } } } } }
    const rejection = await client.callError(create, { integration_id: await freshIntegration(), override: masked })

    expect(rejection).toMatchObject({ code: 'INVALID_ARGUMENT', reason: 'SECRET_MASKED' })
    expect(rejection.violations).toEqual([
      expect.objectContaining({ field: 'override.credentials.oauth2.config.client.secret' }),
    ])
  })
})

describe.each(inTurn(clients))('changing an installation over $wire', (client) => {
  it('merges the override: objects merge, lists and scalars replace, null removes, the rest stays', async () => {
    const before = await install(client, {
      override: { label: 'Old', tags: ['a', 'b'], headers: { 'x-one': '1', 'x-two': '2' } },
    })

    const after = await client.ok(update, {
      id: before.id,
      override: { tags: ['c'], headers: { 'x-two': null, 'x-three': '3' } },
    })

    expect(after).toEqual({
      ...before,
      override: { label: 'Old', tags: ['c'], headers: { 'x-one': '1', 'x-three': '3' } },
      updated_at: TIME,
      etag: '"v2"',
    })
  })

  it('replaces the override whole when asked to', async () => {
    const { id } = await install(client, { override: { label: 'Old', tags: ['a'] } })
    const after = await client.ok(update, { id, override: { label: 'New' }, replace_override: true })
    expect(after.override).toEqual({ label: 'New' })
  })

  it('keeps the override that it does not name, any replace_override says', async () => {
    const { id } = await install(client, { override: { label: 'Kept' } })
    const after = await client.ok(update, { id, show_in_catalog: true, is_enabled: false, replace_override: true })
    expect(after).toMatchObject({ show_in_catalog: true, is_enabled: false, override: { label: 'Kept' } })
  })
})

describe.each(inTurn(clients))('resolving an installation over $wire', (client) => {
  it('shows the merged config and the layer of every leaf', async () => {
    const { id } = await install(client, {
      override: { base_url: 'https://eu.example.com', headers: { 'x-env': 'eu' } },
    })

    const { config, layers } = await client.ok(resolve, { id })

    expect(config).toEqual({
      ...EXAMPLE_CONFIG,
      base_url: 'https://eu.example.com',
      headers: { accept: 'application/json', 'x-env': 'eu' },
    })
    expect(layers).toMatchObject({
      base_url: 'override',
      label: 'integration',
      'headers.accept': 'integration',
      'headers.x-env': 'override',
    })
  })
})

describe.each(inTurn(clients))('listing installations over $wire', (client) => {
  let tenant: Tenant
  let ids: readonly string[]

  beforeAll(async () => {
    tenant = await createApiTenant(app)
    const team = app.client('connect', { token: tenant.teamToken })
    const make = async (fields: JsonObject) => {
      const request = { name: freshName('listed'), config: EXAMPLE_CONFIG }
      const integrationId = await idOf(team, IntegrationService.method.createIntegration, request)
      return await idOf(team, create, { integration_id: integrationId, ...fields }, { token: tenant.environmentToken })
    }
    ids = [await make({}), await make({ is_enabled: false }), await make({ show_in_catalog: true })]
  })

  it.each([
    { filter: {}, expected: [2, 1, 0] },
    { filter: { is_enabled: true }, expected: [2, 0] },
    { filter: { is_enabled: false }, expected: [1] },
    { filter: { show_in_catalog: true }, expected: [2] },
    { filter: { show_in_catalog: false, is_enabled: true }, expected: [0] },
    { filter: { integration_id: newId() }, expected: [] },
  ])('filters by $filter', async ({ filter, expected }) => {
    const { environment_integrations } = await client.ok(list, filter, { token: tenant.environmentToken })
    const found = environment_integrations as unknown as readonly JsonObject[]
    expect(found.map(({ id }) => id)).toEqual(expected.map((index) => ids[index]))
  })

  it('shows the config with view=full alone', async () => {
    const configs = async (request: JsonObject) => {
      const answer = await client.ok(list, request, { token: tenant.environmentToken })
      const found = answer.environment_integrations as unknown as readonly { integration: JsonObject }[]
      return found.map(({ integration }) => integration.config)
    }
    expect(await configs({})).toEqual([undefined, undefined, undefined])
    expect(await configs({ view: 'basic' })).toEqual([undefined, undefined, undefined])
    expect(await configs({ view: 'full' })).toEqual([EXAMPLE_CONFIG, EXAMPLE_CONFIG, EXAMPLE_CONFIG])
  })
})

describe.each(inTurn(clients))('removing an installation over $wire', (client) => {
  it('frees the pair for another installation', async () => {
    const { id, integration_id } = await install(client)

    expect(await client.ok(remove, { id })).toEqual({})
    expect(await client.callError(get, { id })).toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
    await client.ok(create, { integration_id: integration_id ?? '' })
  })

  it('that has accounts is rejected, and with force takes them along', async () => {
    const { environmentIntegrationId: id, integratedAccountId } = await seedTenant(app, app.first)
    const { getIntegratedAccount } = IntegratedAccountService.method

    expect(await client.callError(remove, { id })).toMatchObject({
      code: 'FAILED_PRECONDITION',
      reason: 'RESOURCE_IN_USE',
      resource: { type: 'environment_integration', id },
      httpStatus: statusOver(client, 400),
    })
    await client.ok(getIntegratedAccount, { id: integratedAccountId })

    expect(await client.ok(remove, { id, force: true })).toEqual({})
    expect(await client.callError(getIntegratedAccount, { id: integratedAccountId })).toMatchObject({
      code: 'NOT_FOUND',
    })
  })
})
