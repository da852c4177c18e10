import { afterEach, describe, expect, it } from 'vitest'
import { query } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { API_KEY, startToolServerFixture } from '../servers/fixture.ts'
import { type CallAnswer, callTool, connectClient, ERAS } from './client.ts'

const fixture = await startToolServerFixture()
const { upstream, app, accountId, createServer } = fixture
const FULL = { is_read_only: false }

async function setStatus(status: string): Promise<void> {
  await query(app.database.pool, 'update integrated_account set status = :status where id = :accountId', {
    status,
    accountId,
  })
}

describe.each(ERAS)('a client of the %s handshake', (era) => {
  it('is shown the tools, in the same order and bytes every time, and how to use them', async () => {
    const server = await createServer({ instructions: 'Ask before you write.' })
    const client = await connectClient(server, era)
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(['get_contact', 'list_contacts', 'search_contacts', 'headcount'])
    expect(client.getInstructions()).toBe('Ask before you write.')
    const other = await connectClient(server, era)
    expect(JSON.stringify((await other.listTools()).tools)).toBe(JSON.stringify(tools))
  })

  it('reads a page of records with only the fields that it asked for, and the next page by its cursor', async () => {
    const client = await connectClient(await createServer(), era)
    const ada = { id: 1, name: 'Ada', address: { city: 'London', zip: '1' } }
    upstream.script(
      { request: 'GET /contacts?workspace=w1&per_page=1', answer: { json: { items: [ada], next: 'c2' } } },
      { request: 'GET /contacts?workspace=w1&after=c2&per_page=1', answer: { json: { items: [{ id: 2 }] } } },
    )
    const fields = ['address.city']
    const first = await callTool(client, 'list_contacts', { limit: 1, fields })
    expect(first.structured).toEqual({
      records: [{ id: 1, address: { city: 'London' } }],
      next_cursor: expect.any(String),
    })
    expect(JSON.parse(first.text)).toEqual(first.structured)
    const second = await callTool(client, 'list_contacts', { cursor: String(first.structured.next_cursor), fields })
    expect(second.structured).toEqual({ records: [{ id: 2 }], next_cursor: null, unknown_fields: fields })
  })

  it('learns which of the fields that it asked for no record has', async () => {
    const client = await connectClient(await createServer(), era)
    const items = [{ id: 1, name: 'Ada', address: null }]
    upstream.script({ request: 'GET /contacts?workspace=w1&per_page=20', answer: { json: { items } } })
    const fields = ['nmae', 'address.city', 'name.first']
    expect((await callTool(client, 'list_contacts', { fields })).structured).toMatchObject({
      unknown_fields: ['nmae', 'name.first'],
    })
  })

  it('gets one record, its numbers as the third party wrote them', async () => {
    const client = await connectClient(await createServer(), era)
    upstream.script({ request: 'GET /contacts/7', answer: { text: '{"id":7,"score":12345678901234567890}' } })
    const { text, isError } = await callTool(client, 'get_contact', { id: '7' })
    expect(isError).toBe(false)
    expect(text).toBe('{"id":7,"score":12345678901234567890}')
  })

  it('calls a described action', async () => {
    const client = await connectClient(await createServer(), era)
    upstream.script({ request: 'GET /departments/sales/count', answer: { json: { count: 3 } } })
    expect((await callTool(client, 'headcount', { department: 'sales' })).structured).toEqual({ count: 3 })
  })

  it('writes where the server may write', async () => {
    const client = await connectClient(await createServer(FULL), era)
    upstream.script({
      request: 'POST /contacts',
      body: { email: 'ada@example.com', age: 36 },
      answer: { status: 201, json: { id: 9 } },
    })
    const { structured } = await callTool(client, 'create_contact', { email: 'ada@example.com', age: 36 })
    expect(structured).toEqual({ id: 9 })
  })

  it('learns that a read-only server does not write, and nothing is sent', async () => {
    const client = await connectClient(await createServer(), era)
    const { structured, isError } = await callTool(client, 'delete_contact', { id: '1' })
    expect(isError).toBe(true)
    expect(structured).toMatchObject({ error: { type: 'forbidden', message: expect.stringContaining('read-only') } })
  })

  it('sees the request of a dry run, without the credential, and nothing is sent', async () => {
    const client = await connectClient(await createServer(FULL), era)
    const { structured, text } = await callTool(client, 'delete_contact', { id: '1', dry_run: true })
    expect(structured).toEqual({
      dry_run: true,
      request: {
        method: 'DELETE',
        url: `${upstream.url}/contacts/1`,
        headers: expect.objectContaining({ authorization: 'Bearer ***' }),
      },
    })
    expect(text).not.toContain(API_KEY)
  })

  it.each<[string, JsonObject, readonly string[]]>([
    ['create_contact', {}, ['email']],
    ['create_contact', { email: true, age: -1, kind: 'friend' }, ['email', 'age', 'kind']],
    ['list_contacts', { limit: 101, filter_emial: 'x' }, ['limit', 'filter_emial']],
    ['get_contact', { id: { $ne: 1 } }, ['id']],
  ])('learns what is wrong with the arguments of %s %j', async (name, args, fields) => {
    const client = await connectClient(await createServer(FULL), era)
    const { structured, isError, text } = await callTool(client, name, args)
    expect(isError).toBe(true)
    const { error } = structured as { readonly error: { type: string; fields: readonly { field: string }[] } }
    expect(error.type).toBe('validation')
    expect(error.fields.map(({ field }) => field)).toEqual(fields)
    for (const field of fields) expect(text).toContain(`- ${field}: `)
  })

  it('learns that a tool does not exist, and which one it may have meant', async () => {
    const client = await connectClient(await createServer(), era)
    const { structured } = await callTool(client, 'list_contact', {})
    expect(structured).toMatchObject({ error: { type: 'validation', status: 404 } })
    expect(JSON.stringify(structured)).toContain('list_contacts')
  })

  it.each<[number, JsonObject, JsonObject]>([
    [404, { message: 'no such contact' }, { type: 'upstream', status: 404, message: 'no such contact' }],
    [422, { message: 'bad id' }, { type: 'upstream', status: 422, message: 'bad id' }],
    [403, { message: 'scope missing' }, { type: 'forbidden', status: 403, message: 'scope missing' }],
    [500, { message: `broken near ${API_KEY}` }, { type: 'upstream', status: 500, message: 'broken near ***' }],
  ])('learns of an answer %i of the third party', async (status, json, error) => {
    const client = await connectClient(await createServer(), era)
    upstream.script({ request: 'GET /contacts/1', answer: { status, json } })
    const { structured, isError } = await callTool(client, 'get_contact', { id: '1' })
    expect(isError).toBe(true)
    expect(structured).toEqual({ error: { ...error, log_id: expect.any(String) } })
  })

  it('is advised after a 404 of a list to check its arguments, and not to read that list', async () => {
    const client = await connectClient(await createServer(), era)
    upstream.script(
      { request: 'GET /contacts?workspace=w1&per_page=20', answer: { status: 404, json: {} } },
      { request: 'GET /contacts/1', answer: { status: 404, json: {} } },
    )
    expect((await callTool(client, 'list_contacts', {})).text).toContain('check the ids among the arguments')
    expect((await callTool(client, 'get_contact', { id: '1' })).text).toContain('list the records to find its id')
  })

  it('learns how long to wait for a rate limit', async () => {
    const client = await connectClient(await createServer(), era)
    upstream.script({ request: 'GET /contacts/1', answer: { status: 429, headers: { 'retry-after': '7' }, json: {} } })
    const { structured, text } = await callTool(client, 'get_contact', { id: '1' })
    expect(structured).toMatchObject({ error: { type: 'rate_limited', status: 429, retry_after: 7 } })
    expect(text).toContain('Wait 7 seconds')
  })

  it('learns that the third party took too long', async () => {
    const client = await connectClient(await createServer(), era)
    upstream.script({ request: 'POST /contacts/search', answer: { hang: true } })
    const { structured } = await callTool(client, 'search_contacts', { text: 'x' })
    expect(structured).toMatchObject({ error: { type: 'timeout', status: 504 } })
  })

  it('gets an error without hidden characters, and no page of text', async () => {
    const client = await connectClient(await createServer(), era)
    const message = `no\u202e such\u0000 contact ${'x'.repeat(5_000)}`
    upstream.script({ request: 'GET /contacts/1', answer: { status: 404, json: { message } } })
    const { structured, text } = await callTool(client, 'get_contact', { id: '1' })
    expect(structured).toMatchObject({ error: { message: expect.stringMatching(/^no such contact x{100}/) } })
    expect(text.length).toBeLessThan(1_000)
  })

  it('gets a secret that the third party repeats masked', async () => {
    const client = await connectClient(await createServer(), era)
    upstream.script({ request: 'GET /contacts/1', answer: { json: { id: 1, note: `key ${API_KEY}` } } })
    const { structured, text } = await callTool(client, 'get_contact', { id: '1' })
    expect(structured).toEqual({ id: 1, note: 'key ***' })
    expect(text).not.toContain(API_KEY)
  })

  it.each([4_000, 1_000, 200])('gets no part of a secret where a text is cut at %i characters', async (length) => {
    const client = await connectClient(
      await createServer({ limits: { max_result_bytes: Math.max(2 * length, 1_024) } }),
      era,
    )
    const note = `${'x'.repeat(length - 10)}${API_KEY}${'y'.repeat(20_000)}`
    upstream.script({ request: 'GET /contacts/1', answer: { json: { id: 1, note } } })
    const { structured, text } = await callTool(client, 'get_contact', { id: '1' })
    expect(structured).toMatchObject({ truncated: true })
    expect(text).toContain('x***y')
    expect(text).not.toContain('canary')
  })

  describe('of an account that must be connected again', () => {
    afterEach(() => setStatus('active'))

    it('gets that address too when the third party rejects the credentials', async () => {
      const client = await connectClient(await createServer(), era)
      upstream.script({ request: 'GET /contacts/1', answer: { status: 401, json: { message: 'expired' } } })
      const { structured } = await callTool(client, 'get_contact', { id: '1' })
      expect(structured).toMatchObject({
        error: {
          type: 'needs_reauth',
          status: 401,
          message: 'expired',
          connect_url: expect.stringContaining('/connect?'),
        },
      })
    })

    it('gets the address of the connect page', async () => {
      const client = await connectClient(await createServer(), era)
      await setStatus('validation_error')
      const { structured, text } = await callTool(client, 'get_contact', { id: '1' })
      const { error } = structured as { readonly error: JsonObject }
      expect(error).toMatchObject({ type: 'needs_reauth', status: 401 })
      expect(String(error.connect_url)).toMatch(/\/connect\?link_token=lnk_/)
      expect(text).toContain(String(error.connect_url))
      // An unknown token is answered 404.
      expect((await fetch(String(error.connect_url), { redirect: 'manual' })).status).toBe(303)
    })
  })
})

describe('a tool server of a tenant', () => {
  it('calls the account that the argument names', async () => {
    const accounts = [
      await fixture.addAccount('two'),
      await fixture.addAccount('two', { context: { workspace: 'w2' } }),
    ]
    const settings = { tenant_id: 'two', integrations: [fixture.integrationName] }
    const client = await connectClient(await createServer(settings), 'modern')
    upstream.script({ request: 'GET /contacts?workspace=w2&per_page=20', answer: { json: { items: [] } } })
    const { isError } = await callTool(client, 'list_contacts', { account: accounts[1] ?? '' })
    expect(isError).toBe(false)
    const { structured } = await callTool(client, 'list_contacts', { account: accountId })
    expect(structured).toMatchObject({ error: { type: 'validation', fields: [{ field: 'account' }] } })
  })
})

describe('a sandbox account', () => {
  it('rejects writes with an error of its own type', async () => {
    const sandbox = await fixture.addAccount('acme-test', { is_sandbox: true })
    const created = await fixture.call('POST', '/tool-server', {
      name: 'sandbox',
      integrated_account_id: sandbox,
      is_read_only: false,
    })
    const server = { url: `${app.url}/mcp/${created.id}`, token: String(created.token) }
    const client = await connectClient(server, 'modern')
    const { structured } = await callTool(client, 'delete_contact', { id: '1' })
    expect(structured).toMatchObject({ error: { type: 'sandbox', status: 405 } })
  })
})

describe('limits of a tool server', () => {
  it('cuts a result and says how to ask for less', async () => {
    const client = await connectClient(await createServer({ limits: { max_result_bytes: 2048 } }), 'modern')
    const items = Array.from({ length: 20 }, (_, id) => ({ id, text: 'x'.repeat(300) }))
    upstream.script({ request: 'GET /contacts?workspace=w1&per_page=20', answer: { json: { items } } })
    const { structured, text } = await callTool(client, 'list_contacts', {})
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(2048)
    expect(structured).toMatchObject({ truncated: true, advice: expect.stringContaining('limit') })
    expect(Array.isArray(structured.records) && structured.records.length).toBeGreaterThan(0)
  })

  it('stops writes after as many as it may make a day; dry runs do not count', async () => {
    const client = await connectClient(await createServer({ ...FULL, limits: { writes_per_day: 1 } }), 'modern')
    await callTool(client, 'delete_contact', { id: '1', dry_run: true })
    upstream.script({ request: 'DELETE /contacts/1', answer: { status: 204 } })
    expect((await callTool(client, 'delete_contact', { id: '1' })).isError).toBe(false)
    const { structured } = await callTool(client, 'delete_contact', { id: '2' })
    expect(structured).toMatchObject({ error: { type: 'rate_limited', retry_after: expect.any(Number) } })
  })
})

describe('the search mode', () => {
  const search = async (more: JsonObject = {}): Promise<(name: string, args: JsonObject) => Promise<CallAnswer>> => {
    const client = await connectClient(await createServer({ mode: 'search', ...more }), 'modern')
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(['search_tools', 'describe_tool', 'call_tool'])
    return (name, args) => callTool(client, name, args)
  }

  it('finds, describes and calls a tool', async () => {
    const call = await search()
    const found = await call('search_tools', { query: 'find all contacts', limit: 2 })
    expect(found.structured).toMatchObject({ tools: [{ name: expect.stringContaining('contact') }, {}], total: 4 })
    const described = await call('describe_tool', { name: 'get_contact' })
    expect(described.structured).toMatchObject({ name: 'get_contact', input_schema: { required: ['id'] } })
    upstream.script({ request: 'GET /contacts/1', answer: { json: { id: 1 } } })
    expect((await call('call_tool', { name: 'get_contact', arguments: { id: '1' } })).structured).toEqual({ id: 1 })
  })

  it('finds nothing for words that no tool has, and says so; without words it lists the first ones', async () => {
    const call = await search()
    expect((await call('search_tools', { query: 'zebra' })).structured).toEqual({
      tools: [],
      matches: 0,
      total: 4,
      advice: expect.stringContaining('search with others'),
    })
    expect((await call('search_tools', { query: 'headcount' })).structured).toMatchObject({ matches: 1, total: 4 })
    const { structured } = await call('search_tools', { query: '', limit: 2 })
    expect(structured).toMatchObject({ tools: [{ name: 'get_contact' }, { name: 'list_contacts' }], matches: 4 })
  })

  it('records a call under the name of the tool that ran', async () => {
    const server = await createServer({ mode: 'search' })
    const client = await connectClient(server, 'modern')
    upstream.script({ request: 'GET /contacts/1', answer: { json: { id: 1 } } })
    await callTool(client, 'search_tools', { query: 'contacts' })
    await callTool(client, 'call_tool', { name: 'get_contact', arguments: { id: '1' } })
    await callTool(client, 'call_tool', { name: 'get_contcat' })
    await callTool(client, 'call_tool', { nam: 'get_contact' })
    const { calls } = await fixture.call('GET', `/tool-server/${server.id}/calls`)
    const recorded = (calls as readonly JsonObject[]).map(({ tool, integrated_account_id: account }) => [tool, account])
    expect(recorded.reverse()).toEqual([
      ['search_tools', undefined],
      ['get_contact', accountId],
      ['get_contcat', undefined],
      ['call_tool', undefined],
    ])
  })

  it('writes only where the owner has opted in', async () => {
    const closed = await search(FULL)
    expect((await closed('call_tool', { name: 'delete_contact', arguments: { id: '1' } })).structured).toMatchObject({
      error: { type: 'forbidden' },
    })
    const open = await search({ ...FULL, allow_search_writes: true })
    upstream.script({ request: 'DELETE /contacts/1', answer: { status: 204 } })
    expect((await open('call_tool', { name: 'delete_contact', arguments: { id: '1' } })).isError).toBe(false)
  })
})
