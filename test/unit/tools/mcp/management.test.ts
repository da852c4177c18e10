import { describe, expect, it } from 'vitest'
import { ListWebhooksResponseSchema, WebhookService } from '../../../../gen/patchbay/v1/webhook_service_pb.ts'
import { newId } from '../../../../src/foundation/base/index.ts'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import { effectsOf } from '../../../../src/server/api/effects.ts'
import { maskSecrets } from '../../../../src/server/api/mcp-management/secrets.ts'
import { startTestApp } from '../../../support/app.ts'
import { inTurn } from '../../../support/case-count.ts'
import { SERVICES } from '../../../support/operations.ts'
import { callRest, expectJson } from '../../../support/rest.ts'
import { firstTenant, seedTenant } from '../../../support/seeded-tenant.ts'
import { callTool, connectClient, ERAS } from './client.ts'

const app = await startTestApp()
const tenant = await seedTenant(app, firstTenant(app))
const url = `${app.url}/mcp/management`
const writable = `${url}?read_only=false`
const asEnvironment = { token: tenant.environmentToken }
const asTeam = { token: tenant.teamToken, headers: { 'patchbay-environment': tenant.environmentId } }

/** A request of the older handshake, which needs no other first. */
async function post(query: string, token: string | undefined, body: unknown, headers: Record<string, string> = {}) {
  const answer = await fetch(url + query, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...headers,
    },
    body: JSON.stringify(body),
  })
  return { status: answer.status, headers: answer.headers, text: await answer.text() }
}

const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }

async function toolsOf(query: string, { token, headers }: { token: string; headers?: Record<string, string> }) {
  const { tools } = await (
    await connectClient({ url: url + query, token, ...(headers && { headers }) }, 'modern')
  ).listTools()
  return tools
}

describe.each(inTurn(ERAS))('a client of the %s handshake', (era) => {
  it('searches, reads and calls operations of the contract', async () => {
    const client = await connectClient({ url, ...asTeam }, era)
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(['search_tools', 'describe_tool', 'call_tool'])
    const found = await callTool(client, 'search_tools', { query: 'list connected accounts', limit: 5 })
    expect(JSON.stringify(found.structured)).toContain('"list_integrated_accounts"')
    const described = await callTool(client, 'describe_tool', { name: 'get_integrated_account' })
    expect(described.structured).toMatchObject({ input_schema: { required: ['id'], additionalProperties: false } })
    const args = {
      name: 'get_integrated_account',
      arguments: { id: tenant.integratedAccountId, fields: ['tenant_id'] },
    }
    const { structured, isError } = await callTool(client, 'call_tool', args)
    expect(isError).toBe(false)
    expect(structured).toEqual({ id: tenant.integratedAccountId, tenant_id: 'acme' })
  })

  it('gets the answer that REST gives', async () => {
    const client = await connectClient({ url: `${url}?mode=direct`, ...asEnvironment }, era)
    const { structured, text } = await callTool(client, 'list_sync_jobs', { page_size: 10 })
    expect(structured).toEqual(await expectJson('GET', `${app.url}/sync-job?page_size=10`, tenant.environmentToken))
    expect(JSON.parse(text)).toEqual(structured)
  })

  it('learns that it may not write, and how that is changed; nothing is stored', async () => {
    const client = await connectClient({ url: `${url}?mode=direct`, ...asEnvironment }, era)
    const { structured, text, isError } = await callTool(client, 'delete_sync_job', {
      id: tenant.syncJobId,
      force: true,
    })
    expect(isError).toBe(true)
    expect(structured).toMatchObject({ error: { type: 'forbidden' } })
    expect(text).toContain('read_only=false')
    await expectJson('GET', `${app.url}/sync-job/${tenant.syncJobId}`, tenant.environmentToken)
  })
})

describe('the tools', () => {
  it('are those of the contract, with what they may do', async () => {
    const tools = await toolsOf('?read_only=false', asTeam)
    const lines = tools.map(({ name, annotations, inputSchema }) => {
      const marks = [
        annotations?.readOnlyHint ? 'reads' : 'writes',
        ...(annotations?.destructiveHint ? ['destructive'] : []),
        ...(annotations?.idempotentHint ? ['idempotent'] : []),
        ...(annotations?.openWorldHint ? ['reaches third parties'] : []),
      ]
      return `${name}(${(inputSchema.required ?? []).join(', ')}): ${marks.join(', ')}`
    })
    await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot('golden/management-tools.txt')
  })

  it('call no third party as a client says', async () => {
    const names = (await toolsOf('?read_only=false', asTeam)).map(({ name }) => name)
    expect(names).not.toContain('try_unified_mapping')
    const direct = SERVICES.flatMap(({ methods }) => methods).filter((method) => effectsOf(method).callsDirectly)
    expect(direct.map(({ name }) => name).sort()).toEqual([
      'Call',
      'Call',
      'ListPages',
      'ListPages',
      'TryUnifiedMapping',
    ])
  })

  it('are the same bytes every time', async () => {
    const list = async () => (await post('?mode=direct', asEnvironment.token, LIST)).text
    expect(await list()).toBe(await list())
  })

  it('have short names, described schemas with the rules of the contract, and no references', async () => {
    const tools = await toolsOf('?read_only=false', asTeam)
    for (const { name, description = '', inputSchema } of tools) {
      expect(name).toMatch(/^[a-z_]{3,48}$/)
      expect(description.length).toBeGreaterThan(10)
      expect(description.length).toBeLessThanOrEqual(600)
      expect(JSON.stringify({ description, inputSchema })).not.toMatch(/"\$ref"|Failures: /)
      expect(inputSchema).toMatchObject({ type: 'object', additionalProperties: false })
    }
    const deliveries = tools.find(({ name }) => name === 'list_webhook_deliveries')
    expect(deliveries?.inputSchema.properties).toMatchObject({
      page_size: { type: 'integer', minimum: 0, description: expect.stringContaining('deliveries') },
      state: { type: 'string', enum: ['pending', 'delivered', 'failed', 'discarded'] },
      fields: { type: 'array' },
    })
  })

  it('are only those that the token has a right to', async () => {
    const ofEnvironment = (await toolsOf('?mode=direct', asEnvironment)).map(({ name }) => name)
    expect(ofEnvironment).toContain('list_integrated_accounts')
    expect(ofEnvironment).not.toContain('list_environments')
    const ofTeam = (await toolsOf('?mode=direct', { token: tenant.teamToken })).map(({ name }) => name)
    expect(ofTeam).toContain('list_environments')
    expect(ofTeam).not.toContain('list_integrated_accounts')
  })

  it.each<[string, { token: string }, string]>([
    ['list_environments', asEnvironment, 'team token'],
    ['list_integrated_accounts', { token: tenant.teamToken }, 'patchbay-environment'],
  ])('say why %s cannot be called', async (name, target, why) => {
    const client = await connectClient({ url: `${url}?mode=direct`, ...target }, 'modern')
    const { structured, text } = await callTool(client, name, {})
    expect(structured).toMatchObject({ error: { type: 'forbidden' } })
    expect(text).toContain(why)
  })
})

describe('a call', () => {
  it('writes once per request_id', async () => {
    const client = await connectClient({ url: writable, ...asEnvironment }, 'modern')
    const job = { label: 'again', integration_name: 'x', resources: [{ resource: 'repos', method: 'list' }] }
    const request_id = newId()
    const [one, other] = [
      await callTool(client, 'create_sync_job', { ...job, request_id }),
      await callTool(client, 'create_sync_job', { ...job, request_id }),
    ]
    expect(one.isError).toBe(false)
    expect(other.structured).toEqual(one.structured)
    const reused = await callTool(client, 'create_sync_job', { ...job, label: 'changed', request_id })
    expect(reused.structured).toMatchObject({ error: { reason: 'IDEMPOTENCY_KEY_REUSED', type: 'validation' } })
  })

  it('reports every field that is wrong, as REST does', async () => {
    const client = await connectClient({ url: writable, ...asEnvironment }, 'modern')
    const body = { label: true, resources: 'none', unknown: true }
    const { structured } = await callTool(client, 'create_sync_job', body)
    const { error } = structured as { error: { fields: readonly { field: string }[]; status: number; reason: string } }
    const rest = await callRest('POST', `${app.url}/sync-job`, tenant.environmentToken, body)
    const violations = rest.body.error.details.flatMap(
      (each: { field_violations?: { field: string }[] }) => each.field_violations ?? [],
    )
    expect(error.fields.map(({ field }) => field)).toEqual(violations.map(({ field }: { field: string }) => field))
    expect([error.status, error.reason]).toEqual([rest.status, 'INVALID_FIELD'])
  })

  it.each<[string, JsonObject, JsonObject]>([
    ['get_sync_job', { id: newId() }, { status: 404, reason: 'RESOURCE_NOT_FOUND', type: 'validation' }],
    ['get_sync_job', { id: 'x' }, { status: 400, reason: 'INVALID_FIELD', type: 'validation' }],
    [
      'update_sync_job',
      { id: tenant.syncJobId, label: 'x', etag: 'old' },
      { status: 409, reason: 'ETAG_MISMATCH', type: 'validation' },
    ],
    ['list_sync_job', {}, { status: 404, type: 'validation', message: expect.stringContaining('list_sync_jobs') }],
    ['list_sync_jobs', { fields: 'id' }, { status: 400, type: 'validation' }],
    [
      'list_sync_jobs',
      { fields: ['id', 'lable', 'resources.resource', 'args_schema.any.name'] },
      { type: 'validation', fields: [{ field: 'fields[1]', description: expect.stringContaining('label') }] },
    ],
    [
      'get_sync_job',
      { id: tenant.syncJobId, fields: ['resources.nothing', 'created_at.year', 'label.length'] },
      { type: 'validation', fields: [{ field: 'fields[0]' }, { field: 'fields[1]' }, { field: 'fields[2]' }] },
    ],
  ])('%s %j comes to an error that a model can act on', async (name, args, error) => {
    const client = await connectClient({ url: writable, ...asEnvironment }, 'modern')
    const { structured, isError } = await callTool(client, name, args)
    expect(isError).toBe(true)
    expect(structured).toMatchObject({ error })
  })

  it('cuts a long page and says how to ask for less', async () => {
    const client = await connectClient({ url: writable, ...asEnvironment }, 'modern')
    const description = 'd'.repeat(500)
    const made = app.client('connect', { token: tenant.environmentToken })
    for (let index = 0; index < 90; index++)
      await made.ok(WebhookService.method.createWebhook, { target_url: 'https://app.example.com/hook', description })
    const { structured } = await callTool(client, 'list_webhooks', { page_size: 1000 })
    expect(structured).toMatchObject({ truncated: true, advice: expect.stringContaining('page_size') })
    expect((structured.webhooks as readonly Json[]).length).toBeGreaterThan(10)
    const { structured: short } = await callTool(client, 'list_webhooks', { page_size: 1000, fields: ['target_url'] })
    expect(Object.keys((short.webhooks as readonly JsonObject[])[0] ?? {}).sort()).toEqual(['id', 'target_url'])
    expect(short.truncated).toBeUndefined()
  })
})

describe('secrets', () => {
  it('are not created or rotated here', async () => {
    const names = (await toolsOf('?read_only=false', asTeam)).map(({ name }) => name)
    for (const name of ['create_api_token', 'create_link_token', 'create_tool_server', 'rotate_tool_server_token'])
      expect(names).not.toContain(name)
    for (const name of ['create_webhook', 'rotate_webhook_secret', 'claim_runs']) expect(names).not.toContain(name)
  })

  it.each(['create_webhook', 'rotate_tool_server_token'])('are said to be why %s is left out', async (name) => {
    const client = await connectClient({ url: writable, ...asEnvironment }, 'modern')
    const { structured } = await callTool(client, name, {})
    expect(structured).toMatchObject({
      error: { type: 'forbidden', message: `${name} shows a secret once: use the API` },
    })
  })

  it('are in no result of any read', async () => {
    const api = app.client('connect', { token: tenant.environmentToken })
    const { secret = 'none' } = await api.ok(WebhookService.method.createWebhook, {
      target_url: 'https://app.example.com/hook',
      headers: { 'x-key': 'canary-header-5c1' },
    })
    const canaries = [String(secret), 'canary-header-5c1', 'k-123', tenant.environmentToken, tenant.teamToken]
    const target = { url: `${url}?mode=direct`, ...asTeam }
    const client = await connectClient(target, 'modern')
    const ids: Json[] = [...new Set(Object.values(tenant).filter((value) => /^[0-9a-f-]{36}$/.test(value)))]
    const tools = (await client.listTools()).tools.filter(({ inputSchema: { required = [] } }) =>
      required.every((name) => name === 'id'),
    )
    let answers = 0
    for (const { name, inputSchema } of tools)
      for (const id of inputSchema.required === undefined ? [undefined] : ids) {
        const { text, isError } = await callTool(client, name, id === undefined ? {} : { id })
        if (!isError) answers += 1
        for (const canary of canaries) expect(text).not.toContain(canary)
      }
    expect(answers).toBeGreaterThan(30)
  })
})

describe('the address', () => {
  it.each<[string, string, string | undefined, unknown, number]>([
    ['no token', '', undefined, LIST, 401],
    ['another text', '', 'pbm_x', LIST, 401],
    ['an unknown parameter', '?write=1', tenant.environmentToken, LIST, 400],
    ['another value', '?read_only=no', tenant.environmentToken, LIST, 400],
    ['a batch', '', tenant.environmentToken, [LIST, LIST], 400],
    ['a message', '', tenant.environmentToken, LIST, 200],
  ])('answers %s', async (_, query, token, body, status) => {
    expect((await post(query, token, body)).status).toBe(status)
  })

  it('does not accept the token of a tool server, nor a page of another site', async () => {
    const created = await expectJson('POST', `${app.url}/tool-server`, tenant.environmentToken, {
      name: 'tools',
      integrated_account_id: tenant.integratedAccountId,
    })
    expect((await post('', String(created.token), LIST)).status).toBe(401)
    const origin = 'https://evil.example.com'
    expect((await post('', tenant.environmentToken, LIST, { origin })).status).toBe(403)
  })

  it('does not name the environment of another team', async () => {
    const headers = { 'patchbay-environment': newId() }
    expect((await post('', tenant.teamToken, LIST, headers)).status).toBe(404)
  })
})

it('every mark of a secret in the contract is masked', async () => {
  const masked = maskSecrets(ListWebhooksResponseSchema, { webhooks: [{ id: '1', secret: 'whsec_x' }] })
  expect(masked.webhooks).toEqual([{ id: '1', secret: '***' }])
})
