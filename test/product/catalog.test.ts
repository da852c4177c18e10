import { describe, expect, it } from 'vitest'
import { CatalogService } from '../../gen/patchbay/v1/catalog_service_pb.ts'
import { EnvironmentIntegrationService } from '../../gen/patchbay/v1/environment_integration_service_pb.ts'
import { IntegrationService } from '../../gen/patchbay/v1/integration_service_pb.ts'
import { LinkTokenService } from '../../gen/patchbay/v1/link_token_service_pb.ts'
import { TeamService } from '../../gen/patchbay/v1/team_service_pb.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { setTeamVerified } from '../../src/platform/tenancy/index.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import { statusOver } from '../support/matchers.ts'
import { OPERATIONS } from '../support/operations.ts'
import { createApiEnvironment, freshName, idOf } from '../support/seeded-tenant.ts'

const { listCatalog } = CatalogService.method
const { updateEnvironmentIntegration } = EnvironmentIntegrationService.method

const app = await startTestApp()
const admin = app.client('connect', { token: app.first.teamToken })
const { environmentId, environmentToken: token } = await createApiEnvironment(app, app.first.teamToken)
const environment = app.client('connect', { token })
const clients = app.clients({ token })

const KEY = { config: { fields: [{ name: 'api_key', type: 'password', required: true }] } }
const OAUTH = {
  label: 'Sign in',
  config: {
    client: { id: '{{environment_variables.CLIENT_ID}}', secret: '{{environment_variables.CLIENT_SECRET}}' },
    auth: { tokenHost: 'https://auth.example.com', authorizeHost: 'https://auth.example.com' },
  },
}
const CONFIG: JsonObject = {
  base_url: 'https://api.example.com',
  credentials: { oauth2: OAUTH, api_key: KEY },
  resources: {
    contacts: { list: { path: '/contacts', description: 'All contacts.' }, get: { path: '/contacts/{{id}}' } },
    deals: { list: { path: '/deals', description: 'All deals.' } },
  },
  webhook: { events: '[{"event_type": "updated", "resource": "contacts"}]' },
}

interface Installed {
  readonly name: string
  readonly integrationId: string
  readonly id: string
}

async function install(integration: JsonObject = {}, installation: JsonObject = {}): Promise<Installed> {
  const name = freshName('example')
  const integrationId = await idOf(admin, IntegrationService.method.createIntegration, {
    name,
    config: CONFIG,
    ...integration,
  })
  const create = EnvironmentIntegrationService.method.createEnvironmentIntegration
  const request = { integration_id: integrationId, show_in_catalog: true, ...installation }
  return { name, integrationId, id: await idOf(environment, create, request) }
}

const crm = await install(
  { category: 'crm', is_beta: true },
  {
    override: {
      label: 'Customers Ü',
      description: 'Contacts and deals of your sales team.',
      tags: ['Sales', 'europe'],
      logo: 'https://cdn.example.com/logo.png',
      icon: 'https://cdn.example.com/icon.svg',
    },
  },
)
const plain = await install({
  category: 'support',
  config: { ...CONFIG, description: 'Tickets.', tags: ['help desk'] },
})
const hidden = await install({}, { show_in_catalog: false })
await install({}, { is_enabled: false })

const entriesOf = (answer: JsonObject) => answer.catalog_entries as readonly JsonObject[]
const namesOf = (answer: JsonObject) => entriesOf(answer).map(({ name }) => name)

async function linkTo(request: JsonObject): Promise<{ readonly id: string; readonly token: string }> {
  const made = await environment.ok(LinkTokenService.method.createLinkToken, { tenant_id: 'acme', ...request })
  return { id: made.id, token: String(made.link_token) }
}

describe.each(inTurn(clients))('the catalog over $wire', (client) => {
  it('shows what people choose by, of each enabled installation that is shown, newest first', async () => {
    const team = await admin.ok(TeamService.method.getTeam, { id: app.first.teamId })
    const [first, second, ...others] = entriesOf(await client.ok(listCatalog, {}))
    expect(others).toEqual([])
    expect(first).toMatchObject({ name: plain.name, label: plain.name, description: 'Tickets.', tags: ['help desk'] })
    expect(second).toEqual({
      environment_integration_id: crm.id,
      integration_id: crm.integrationId,
      name: crm.name,
      label: 'Customers Ü',
      description: 'Contacts and deals of your sales team.',
      tags: ['Sales', 'europe'],
      logo: 'https://cdn.example.com/logo.png',
      icon: 'https://cdn.example.com/icon.svg',
      category: 'crm',
      is_beta: true,
      auth_methods: [
        { credential: 'oauth2', label: 'Sign in', authentication_method: 'oauth2', is_connectable: false },
        { credential: 'api_key', label: '', authentication_method: 'api_key', is_connectable: true },
      ],
      team: { name: team.name, is_verified: false, tos_link: '' },
      resource_count: 2,
      method_count: 3,
      tool_count: 2,
      unified_models: [],
      receives_webhooks: true,
      subscribes_webhooks: false,
    })
  })

  it.each([
    ['a category', { category: 'crm' }, [crm]],
    ['a category without entries', { category: 'hris' }, []],
    ['a tag, in any case', { tags: ['sales'] }, [crm]],
    ['one of several tags', { tags: ['none', 'Help Desk', 'EUROPE'] }, [plain, crm]],
    ['a word of the label, without case and accents', { q: 'customers u' }, [crm]],
    ['a part of the description', { q: 'deal' }, [crm]],
    ['words of several fields', { q: '  sales CRM ' }, [crm]],
    ['a tag in the search', { q: 'help' }, [plain]],
    ['words that no entry has all of', { q: 'sales tickets' }, []],
    ['beta', { is_beta: true }, [crm]],
    ['no beta', { is_beta: false }, [plain]],
    ['several filters', { is_beta: true, category: 'support' }, []],
    ['an empty search', { q: '', tags: [] }, [plain, crm]],
  ])('is filtered by %s', async (_, filter, expected) => {
    expect(namesOf(await client.ok(listCatalog, filter))).toEqual(expected.map(({ name }) => name))
  })

  it('is read page by page, also where a filter leaves out whole pages of rows', async () => {
    const first = await client.ok(listCatalog, { page_size: 1 })
    expect(namesOf(first)).toEqual([plain.name])
    const second = await client.ok(listCatalog, { page_size: 1, page_token: first.next_page_token ?? '' })
    expect([namesOf(second), second.next_page_token]).toEqual([[crm.name], ''])
    const filtered = await client.ok(listCatalog, { page_size: 1, q: 'sales' })
    expect([namesOf(filtered), filtered.next_page_token]).toEqual([[crm.name], ''])
    const other = client.callError(listCatalog, { q: 'sales', page_token: first.next_page_token ?? '' })
    expect(await other).toMatchObject({ reason: 'PAGE_TOKEN_INVALID', httpStatus: statusOver(client, 400) })
  })

  it('shows a link token what its link may connect, with the methods that its customer can use', async () => {
    const link = await linkTo({ integrations: [crm.id, hidden.id] })
    const entries = entriesOf(await client.ok(listCatalog, {}, { token: link.token }))
    expect(entries.map(({ name }) => name)).toEqual([hidden.name, crm.name])
    expect(entries[1]).toMatchObject({ auth_methods: [{ credential: 'api_key' }] })
    const byKey = await linkTo({ integrations: [crm.id], allowed_credentials: ['api_key'] })
    const [only] = entriesOf(await client.ok(listCatalog, {}, { token: byKey.token }))
    expect(only).toMatchObject({ auth_methods: [{ credential: 'api_key' }] })
    const all = await linkTo({})
    expect(namesOf(await client.ok(listCatalog, {}, { token: all.token }))).toEqual([plain.name, crm.name])
  })

  it('does not know the token of a link that has ended', async () => {
    const link = await linkTo({})
    await environment.ok(LinkTokenService.method.cancelLinkToken, { id: link.id })
    const rejected = { reason: 'TOKEN_INVALID', httpStatus: statusOver(client, 401) }
    expect(await client.callError(listCatalog, {}, { token: link.token })).toMatchObject(rejected)
    const forged = `${link.token.slice(0, -1)}${link.token.endsWith('a') ? 'b' : 'a'}`
    expect(await client.callError(listCatalog, {}, { token: forged })).toMatchObject(rejected)
  })

  it('keeps page tokens of links apart', async () => {
    const [one, other] = [await linkTo({}), await linkTo({})]
    const { next_page_token = '' } = await client.ok(listCatalog, { page_size: 1 }, { token: one.token })
    const rejection = client.callError(listCatalog, { page_token: next_page_token }, { token: other.token })
    expect(await rejection).toMatchObject({ reason: 'PAGE_TOKEN_INVALID' })
  })
})

describe('a link token', () => {
  it.each(OPERATIONS.filter(({ name }) => name !== 'ListCatalog'))('is no token for $name', async (method) => {
    const link = await linkTo({})
    const outcome = await app.client('connect').send(method, {}, { token: link.token, environment: environmentId })
    expect(outcome).toMatchObject({ ok: false, error: { reason: 'TOKEN_INVALID' } })
  })

  it('is none for the addresses beside the contract', async () => {
    const link = await linkTo({})
    const get = (path: string) => fetch(app.url + path, { headers: { authorization: `Bearer ${link.token}` } })
    for (const path of ['/proxy/contacts', '/custom/contacts', '/unified/crm/contacts'])
      expect([path, (await get(path)).status]).toEqual([path, 401])
  })
})

describe('the catalog follows', () => {
  it('the override, the integration and the team', async () => {
    const changing = await install()
    const read = async () =>
      entriesOf(await environment.ok(listCatalog, { page_size: 1000 })).find(({ name }) => name === changing.name)
    expect(await read()).toMatchObject({ description: '', is_beta: false, logo: '' })

    await environment.ok(updateEnvironmentIntegration, { id: changing.id, override: { description: 'New.' } })
    await admin.ok(IntegrationService.method.updateIntegration, { id: changing.integrationId, is_beta: true })
    await setTeamVerified(app.database.pool, app.first.teamId, true)
    await admin.ok(TeamService.method.updateTeam, { id: app.first.teamId, tos_link: 'https://example.com/terms' })
    expect(await read()).toMatchObject({
      description: 'New.',
      is_beta: true,
      team: { is_verified: true, tos_link: 'https://example.com/terms' },
    })

    await setTeamVerified(app.database.pool, app.first.teamId, false)
    await admin.ok(TeamService.method.updateTeam, { id: app.first.teamId, tos_link: '' })
    await environment.ok(updateEnvironmentIntegration, { id: changing.id, show_in_catalog: false })
    expect(await read()).toBeUndefined()
  })

  it('shipped definitions: their logo comes from here, and their unified models are named', async () => {
    const other = await createApiEnvironment(app, app.first.teamToken)
    const client = app.client('rest', { token: other.environmentToken })
    const integration_id = await idOf(admin, IntegrationService.method.createIntegration, {
      name: 'hubspot',
      config: CONFIG,
    })
    await client.ok(EnvironmentIntegrationService.method.createEnvironmentIntegration, {
      integration_id,
      show_in_catalog: true,
    })
    const [entry] = entriesOf(await client.ok(listCatalog, {}))
    expect(entry).toMatchObject({
      name: 'hubspot',
      logo: `${app.url}/connect/logo/hubspot.svg`,
      unified_models: ['crm', 'directory'],
    })
    const logo = await fetch(String(entry?.logo))
    expect([logo.status, logo.headers.get('content-type')]).toEqual([200, 'image/svg+xml'])
    expect(logo.headers.get('cross-origin-resource-policy')).toBe('cross-origin')
  })
})
