import { describe, expect, it, onTestFinished } from 'vitest'
import { execute, query } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { callRest } from '../../../support/rest.ts'
import { startToolServerFixture } from './fixture.ts'

const fixture = await startToolServerFixture()
const { app, accountId, integrationName, call } = fixture

async function create(settings: JsonObject): Promise<JsonObject> {
  return await call('POST', '/tool-server', { name: 'Acme', integrated_account_id: accountId, ...settings })
}

async function rejected(settings: JsonObject) {
  const answer = await callRest('POST', `${app.url}/tool-server`, app.first.environmentToken, settings)
  expect(answer.status).toBe(400)
  const { fieldViolations, field_violations = fieldViolations } =
    answer.body.error.details.find((detail: JsonObject) => String(detail['@type']).endsWith('BadRequest')) ?? {}
  return field_violations as readonly { readonly field: string; readonly description: string }[]
}

async function toolNames(id: unknown): Promise<readonly string[]> {
  const { tools } = (await call('GET', `/tool-server/${id}/tools`)) as unknown as { tools: readonly { name: string }[] }
  return tools.map(({ name }) => name)
}

describe('a tool server', () => {
  it('shows its token when it is created and rotated, and never again', async () => {
    const created = await create({})
    expect(created).toMatchObject({
      is_read_only: true,
      mode: 'auto',
      allow_search_writes: false,
      is_enabled: true,
      limits: { requests_per_minute: 60, writes_per_day: 1000, max_result_bytes: 65536 },
      url: `${app.url}/mcp/${created.id}`,
      token: expect.stringMatching(/^pbm_[0-9A-Za-z]{38}$/),
    })
    expect(created.token_hint).toBe(String(created.token).slice(-4))
    const path = `/tool-server/${created.id}`
    for (const shown of [await call('GET', path), await call('PATCH', path, { name: 'Other' })])
      expect(shown).not.toHaveProperty('token')
    expect(JSON.stringify(await call('GET', '/tool-server'))).not.toContain(String(created.token))
    const rotated = await call('POST', `${path}/rotate-token`, {})
    expect(rotated.token).not.toBe(created.token)
  })

  it('is rejected at 1000 in an environment', async () => {
    const { pool } = app.database
    const { id } = await create({ name: 'copied' })
    onTestFinished(async () => void (await execute(pool, `delete from tool_server where name = 'copied'`)))
    const { rows } = await pool.raw('select count(*)::int as count from tool_server')
    await execute(
      pool,
      `insert into tool_server select (jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid()))).*
         from tool_server t, generate_series(:from::int, 1000) where t.id = :id`,
      { id: String(id), from: rows[0].count + 1 },
    )
    const full = { name: 'one more', integrated_account_id: accountId }
    const answer = await callRest('POST', `${app.url}/tool-server`, app.first.environmentToken, full)
    expect([answer.status, answer.body.error.details[0].reason]).toEqual([400, 'LIMIT_REACHED'])
    await call('DELETE', `/tool-server/${id}`)
    await create({ name: 'after one is deleted' })
  })

  it('stores no text of its token', async () => {
    const { id, token } = await create({})
    const [row] = await query<{ row: string }>(
      app.database.pool,
      'select t::text as row from tool_server t where id = :id',
      {
        id: String(id),
      },
    )
    expect(row?.row).toContain(String(token).slice(-4))
    expect(row?.row).not.toContain(String(token).slice(0, 12))
  })

  it.each<[string, JsonObject, string]>([
    ['neither account nor tenant', {}, 'integrated_account_id'],
    ['both', { integrated_account_id: accountId, tenant_id: 'acme' }, 'integrated_account_id'],
    ['integrations of one account', { integrated_account_id: accountId, integrations: ['x'] }, 'integrations'],
    ['an expiry in the past', { integrated_account_id: accountId, expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'],
    [
      'too few bytes',
      { integrated_account_id: accountId, limits: { max_result_bytes: 10 } },
      'limits.max_result_bytes',
    ],
    ['a filter that matches nothing', { integrated_account_id: accountId, filter: { tags: ['none'] } }, 'filter'],
    [
      'a filter that matches writes alone, on a read-only server',
      { integrated_account_id: accountId, filter: { methods: ['write'] } },
      'filter',
    ],
  ])('is rejected with %s', async (_, settings, field) => {
    expect(await rejected({ name: 'x', ...settings })).toMatchObject([{ field }])
  })

  it('says that a read-only server is why nothing matches', async () => {
    const settings = { name: 'x', integrated_account_id: accountId, filter: { include_names: ['delete_contact'] } }
    expect(await rejected(settings)).toMatchObject([{ description: expect.stringContaining('is_read_only') }])
  })

  it('keeps its old filter when a new one would match nothing', async () => {
    const { id } = await create({ filter: { resources: ['contacts'] } })
    const path = `${app.url}/tool-server/${id}`
    const answer = await callRest('PATCH', path, app.first.environmentToken, { filter: { tags: ['none'] } })
    expect(answer.status).toBe(400)
    expect((await call('GET', `/tool-server/${id}`)).filter).toMatchObject({ resources: ['contacts'], tags: [] })
  })

  it('never expires once that is asked for', async () => {
    const { id, expires_at } = await create({ expires_at: new Date(Date.now() + 3_600_000).toISOString() })
    const path = `/tool-server/${id}`
    expect((await call('PATCH', path, { name: 'Renamed' })).expires_at).toBe(expires_at)
    const both = { never_expires: true, expires_at }
    expect((await callRest('PATCH', app.url + path, app.first.environmentToken, both)).status).toBe(400)
    expect(await call('PATCH', path, { never_expires: true })).not.toHaveProperty('expires_at')
    expect(await call('GET', path)).not.toHaveProperty('expires_at')
  })

  it('is deleted with its account', async () => {
    const account = await fixture.addAccount('gone')
    const { id } = await call('POST', '/tool-server', { name: 'x', integrated_account_id: account })
    await callRest('DELETE', `${app.url}/integrated-account/${account}`, app.first.environmentToken)
    expect((await callRest('GET', `${app.url}/tool-server/${id}`, app.first.environmentToken)).status).toBe(404)
  })

  it('is listed by account and by tenant', async () => {
    const account = await fixture.addAccount('listed')
    const own = await call('POST', '/tool-server', { name: 'own', integrated_account_id: account })
    const shared = await call('POST', '/tool-server', { name: 'shared', tenant_id: 'listed' })
    const ids = async (filter: string) =>
      ((await call('GET', `/tool-server?${filter}`)).tool_servers as readonly JsonObject[]).map(({ id }) => id)
    expect(await ids(`integrated_account_id=${account}`)).toEqual([own.id])
    expect(await ids('tenant_id=listed')).toEqual([shared.id])
  })
})

describe('the filter', () => {
  const all = ['create_contact', 'delete_contact', 'get_contact', 'list_contacts', 'search_contacts', 'headcount']

  it.each<[JsonObject, readonly string[]]>([
    [{}, all],
    [{ methods: ['read'] }, ['get_contact', 'list_contacts']],
    [{ methods: ['write'] }, ['create_contact', 'delete_contact']],
    [{ methods: ['custom'] }, ['search_contacts', 'headcount']],
    [{ sources: ['actions'] }, ['headcount']],
    [{ tags: ['people'], methods: ['read'] }, ['get_contact', 'list_contacts']],
    [
      { resources: ['contacts'], exclude_names: ['delete_contact'] },
      all.filter((name) => !/delete|headcount/.test(name)),
    ],
    [{ include_names: ['headcount', 'get_contact'] }, ['get_contact', 'headcount']],
  ])('%j has %j', async (filter, names) => {
    const { id } = await create({ filter, is_read_only: false })
    expect(await toolNames(id)).toEqual(names)
  })
})

describe('the listing of tools', () => {
  it('shows what a client sees, what it costs, and what is wrong', async () => {
    const { id } = await create({ is_read_only: false, filter: { exclude_names: ['nothing'] } })
    const listing = await call('GET', `/tool-server/${id}/tools`)
    const tools = listing.tools as readonly JsonObject[]
    expect(tools.find(({ name }) => name === 'list_contacts')).toMatchObject({
      title: 'List contacts',
      source: 'proxy',
      resource: 'contacts',
      method: 'list',
      is_read_only: true,
      is_destructive: false,
      is_idempotent: true,
      input_schema: { type: 'object', additionalProperties: false },
    })
    expect(tools.find(({ name }) => name === 'delete_contact')).toMatchObject({
      is_destructive: true,
      is_idempotent: true,
    })
    expect(tools.find(({ name }) => name === 'create_contact')).toMatchObject({
      is_destructive: false,
      is_idempotent: false,
    })
    const estimates = tools.map(({ estimated_tokens: tokens }) => Number(tokens))
    expect(listing.estimated_tokens).toBe(estimates.reduce((sum, each) => sum + each, 0))
    expect(listing.warnings).toEqual([
      expect.objectContaining({ code: 'unknown_name', tool: 'nothing' }),
      expect.objectContaining({ code: 'no_description', tool: 'merge of contacts' }),
    ])
  })

  it.each([
    [{ resources: ['contacts', 'contcats'] }, '', 'resources name contcats, which no tool has, did you mean contacts?'],
    [{ tags: ['people', 'peple'] }, '', 'tags name peple, which no tool has, did you mean people?'],
    [
      { include_names: ['headcount', 'headcont'] },
      'headcont',
      'name headcont, which no tool has, did you mean headcount?',
    ],
  ])('warns of names in %j that no tool has', async (filter, tool, message) => {
    const { id } = await create({ filter })
    const { warnings } = await call('GET', `/tool-server/${id}/tools`)
    expect(warnings).toContainEqual({ code: 'unknown_name', tool, message: expect.stringContaining(message) })
  })

  it('shows the tools of the search mode, and which ones they find', async () => {
    const { id } = await create({ mode: 'search' })
    const listing = await call('GET', `/tool-server/${id}/tools`)
    expect(listing).toMatchObject({
      mode: 'search',
      searchable_names: ['get_contact', 'list_contacts', 'search_contacts', 'headcount'],
    })
    expect(await toolNames(id)).toEqual(['search_tools', 'describe_tool', 'call_tool'])
  })
})

describe('a tool server of a tenant', () => {
  it('names tools after their integration and takes the account as an argument', async () => {
    const accounts = [await fixture.addAccount('big'), await fixture.addAccount('big')]
    const { id } = await call('POST', '/tool-server', { name: 'x', tenant_id: 'big', filter: { methods: ['read'] } })
    const prefix = integrationName.replaceAll('-', '_')
    expect(await toolNames(id)).toEqual([`${prefix}_get_contact`, `${prefix}_list_contacts`])
    const { tools } = (await call('GET', `/tool-server/${id}/tools`)) as unknown as { tools: readonly JsonObject[] }
    expect(tools[0]?.input_schema).toMatchObject({
      properties: { account: { type: 'string', enum: accounts } },
      required: ['id', 'account'],
    })
  })

  it.each<[string, readonly string[], string]>([
    ['acme', ['githb'], 'no connected account of tenant acme has one of: githb'],
    ['new-tenant', [], 'tenant new-tenant has no connected account'],
  ])('of %s with the integrations %j warns that it has no accounts', async (tenantId, integrations, message) => {
    const { id } = await call('POST', '/tool-server', { name: 'x', tenant_id: tenantId, integrations })
    const { tools, warnings } = await call('GET', `/tool-server/${id}/tools`)
    expect([tools, warnings]).toEqual([[], [{ code: 'no_accounts', tool: '', message }]])
  })

  it('has no prefix for one integration, and gets the accounts that are connected later', async () => {
    const { id } = await call('POST', '/tool-server', {
      name: 'x',
      tenant_id: 'later',
      integrations: [integrationName],
    })
    expect(await toolNames(id)).toEqual([])
    await fixture.addAccount('later')
    expect(await toolNames(id)).toContain('list_contacts')
  })
})
