import { describe, expect, it } from 'vitest'
import { systemClock } from '../../../../src/foundation/base/index.ts'
import { execute } from '../../../../src/foundation/database/index.ts'
import { mintToolToken } from '../../../../src/tools/servers/token.ts'
import { callRest } from '../../../support/rest.ts'
import { startToolServerFixture } from '../servers/fixture.ts'
import { callTool, connectClient } from './client.ts'

const fixture = await startToolServerFixture({ settings: { PATCHBAY_CORS_ORIGINS: 'https://agent.example.com' } })
const { app, upstream, createServer } = fixture

/** One request of the older handshake, which needs no other first. */
const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }

function post(url: string, token: string | undefined, headers: Record<string, string> = {}, body: unknown = LIST) {
  return callMcp(url, token, { method: 'POST', body: JSON.stringify(body), headers })
}

async function callMcp(url: string, token: string | undefined, { headers, ...init }: RequestInit): Promise<Response> {
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const accept = 'application/json, text/event-stream'
  return await fetch(url, {
    ...init,
    headers: { 'content-type': 'application/json', accept, ...authorization, ...(headers as Record<string, string>) },
  })
}

/** Waits until a request is answered with a status: a server may know a token for a moment longer. */
async function untilStatus(url: string, token: string, status: number): Promise<void> {
  await expect.poll(async () => (await post(url, token)).status).toBe(status)
}

describe('a client that names one type of answer, or none', () => {
  it.each([
    ['application/json', 'application/json'],
    ['*/*', 'application/json'],
    ['text/html', 'application/json'],
    ['text/event-stream', 'text/event-stream'],
    ['application/json, text/event-stream', 'text/event-stream'],
  ])('%s: is answered as %s', async (accept, type) => {
    const { url, token } = await createServer()
    const answer = await post(url, token, { accept })
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, type])
    const text = await answer.text()
    const json = type === 'application/json' ? text : text.slice(text.indexOf('data:') + 5)
    expect(JSON.parse(json)).toMatchObject({ jsonrpc: '2.0', id: 1, result: { tools: expect.any(Array) } })
  })
})

describe('the token of a tool server', () => {
  it('is needed, and a 401 says so', async () => {
    const { url } = await createServer()
    const answer = await post(url, undefined)
    expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
  })

  it('is the only one that its address accepts: no API token, no token of another server, no other text', async () => {
    const server = await createServer()
    const other = await createServer()
    expect((await post(server.url, server.token)).status).toBe(200)
    for (const token of [app.first.environmentToken, app.first.teamToken, other.token, `${server.token}x`, 'x'])
      expect((await post(server.url, token)).status).toBe(401)
    expect((await post(`${app.url}/mcp/${crypto.randomUUID()}`, server.token)).status).toBe(401)
    expect((await post(`${app.url}/mcp/nonsense`, server.token)).status).toBe(401)
  })

  it('does not count against the limit of its address, whatever else that sends', async () => {
    const limited = await startToolServerFixture({ settings: { PATCHBAY_RATE_LIMIT_ADDRESS: '5' } })
    const servers = await Promise.all([1, 2].map(() => limited.createServer()))
    const valid = Array.from({ length: 20 }, (_, index) => servers[index % servers.length])
    const statuses = await Promise.all([
      ...valid.map((server) => post(server?.url ?? '', server?.token)),
      ...valid.map((server) => post(server?.url ?? '', mintToolToken().token)),
    ])
    const counts = Map.groupBy(statuses, ({ status }) => status)
    expect(statuses.slice(0, valid.length).map(({ status }) => status)).toEqual(valid.map(() => 200))
    expect([counts.get(401)?.length, counts.get(429)?.length]).toEqual([5, 15])
  })

  it('is accepted nowhere else', async () => {
    const { id, token } = await createServer()
    for (const path of [
      '/tool-server',
      `/tool-server/${id}/tools`,
      '/integrated-account',
      '/environment',
      '/proxy/contacts',
    ])
      expect((await callRest('GET', app.url + path, token)).status).toBe(401)
  })

  it('is no longer accepted after its rotation, after turning the server off, after its expiry and deletion', async () => {
    const rotated = await createServer()
    await post(rotated.url, rotated.token)
    const { token } = await fixture.call('POST', `/tool-server/${rotated.id}/rotate-token`, {})
    await untilStatus(rotated.url, rotated.token, 401)
    expect((await post(rotated.url, String(token))).status).toBe(200)
    await fixture.call('PATCH', `/tool-server/${rotated.id}`, { is_enabled: false })
    await untilStatus(rotated.url, String(token), 401)
    const expired = await createServer()
    await post(expired.url, expired.token)
    await execute(app.database.pool, `update tool_server set expires_at = now() - interval '1 second' where id = :id`, {
      id: expired.id,
    })
    await untilStatus(expired.url, expired.token, 401)
    const deleted = await createServer()
    await post(deleted.url, deleted.token)
    await callRest('DELETE', `${app.url}/tool-server/${deleted.id}`, app.first.environmentToken)
    await untilStatus(deleted.url, deleted.token, 401)
  })
})

describe('the address of a tool server', () => {
  it.each(['GET', 'DELETE', 'PUT'])('answers %s with 405', async (method) => {
    const { url, token } = await createServer()
    const answer = await callMcp(url, token, { method })
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'OPTIONS, POST'])
  })

  it.each<[string, Record<string, string>, number]>([
    ['this service', { origin: app.url }, 200],
    ['loopback', { origin: 'http://localhost:3000' }, 200],
    ['a configured origin', { origin: 'https://agent.example.com' }, 200],
    ['another site', { origin: 'https://evil.example.com' }, 403],
    ['no site', { origin: 'null' }, 403],
  ])('takes requests of pages of %s: %j → %i', async (_, headers, status) => {
    const { url, token } = await createServer()
    expect((await post(url, token, headers)).status).toBe(status)
  })

  it.each([
    ['a page of another site could have bound to it', 'evil.example.com', 403],
    ['a proxy calls this service by', 'patchbay', 200],
  ])('a Host that %s: %s → %i', async (_, host, expected) => {
    const { url, token } = await createServer()
    const { request } = await import('node:http')
    const status = await new Promise((resolve, reject) => {
      const sent = request(url, {
        method: 'POST',
        headers: { host, authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      })
      sent.on('response', ({ statusCode }) => resolve(statusCode)).on('error', reject)
      sent.end(JSON.stringify(LIST))
    })
    expect(status).toBe(expected)
  })

  it('answers requests above the rate with 429 and the time to wait', async () => {
    const { url, token } = await createServer({ limits: { requests_per_minute: 2 } })
    expect([(await post(url, token)).status, (await post(url, token)).status]).toEqual([200, 200])
    const answer = await post(url, token)
    expect(answer.status).toBe(429)
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
  })

  it.each<[string, string, number]>([
    ['no JSON', '{', 400],
    ['no message', '{}', 400],
    ['an empty body', '', 400],
    ['more than 1 MiB', JSON.stringify({ ...LIST, params: { cursor: 'x'.repeat(1024 * 1024) } }), 413],
    ['a number that no double holds as id', '{"jsonrpc":"2.0","id":12345678901234567890,"method":"tools/list"}', 400],
  ])('rejects %s', async (_, body, status) => {
    const { url, token } = await createServer()
    expect((await callMcp(url, token, { method: 'POST', body })).status).toBe(status)
  })

  it('rejects a cursor that is none of its list', async () => {
    const { url, token } = await createServer()
    const answer = await post(url, token, {}, { ...LIST, params: { cursor: 'abc' } })
    expect(await answer.text()).toContain('-32602')
  })

  it('does not hold a stream open for a client that subscribes to changes', async () => {
    const { url, token } = await createServer()
    const revision = '2026-07-28'
    const meta = {
      'io.modelcontextprotocol/protocolVersion': revision,
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    const answer = await post(
      url,
      token,
      { 'mcp-protocol-version': revision, 'mcp-method': 'subscriptions/listen' },
      { ...LIST, method: 'subscriptions/listen', params: { _meta: meta, notifications: { toolsListChanged: true } } },
    )
    expect(await answer.text()).toContain('"error"')
  })

  it('cancels the call of a client that disconnects', async () => {
    const server = await createServer()
    upstream.script({ request: 'GET /contacts/1', answer: { hang: true } })
    const abort = new AbortController()
    const call = { ...LIST, method: 'tools/call', params: { name: 'get_contact', arguments: { id: '1' } } }
    const answer = callMcp(server.url, server.token, {
      method: 'POST',
      body: JSON.stringify(call),
      signal: abort.signal,
    }).catch(() => undefined)
    while (upstream.requests.length === 0) await systemClock.sleep(5)
    abort.abort()
    await answer
    let calls: readonly unknown[] = []
    while (calls.length === 0)
      calls = (await fixture.call('GET', `/tool-server/${server.id}/calls`)).calls as readonly unknown[]
    expect(calls).toMatchObject([{ tool: 'get_contact', outcome: 'error', error_type: 'cancelled' }])
  })
})

describe('the record of calls', () => {
  it('has a row per call: tool, account, token, outcome, duration, bytes', async () => {
    const server = await createServer()
    const client = await connectClient(server, 'modern')
    upstream.script({ request: 'GET /contacts/1', answer: { json: { id: 1 } } })
    await callTool(client, 'get_contact', { id: '1' })
    await callTool(client, 'delete_contact', { id: '1' })
    const hint = server.token.slice(-4)
    const path = `/tool-server/${server.id}/calls`
    expect((await fixture.call('GET', path)).calls).toEqual([
      expect.objectContaining({ tool: 'delete_contact', outcome: 'error', error_type: 'forbidden', token_hint: hint }),
      {
        id: expect.any(String),
        tool_server_id: server.id,
        tool: 'get_contact',
        integrated_account_id: fixture.accountId,
        token_hint: hint,
        outcome: 'ok',
        error_type: '',
        duration_ms: expect.any(Number),
        result_bytes: 8,
        is_dry_run: false,
        created_at: expect.any(String),
      },
    ])
    expect((await fixture.call('GET', `${path}?outcome=ok`)).calls).toHaveLength(1)
    const page = await fixture.call('GET', `${path}?page_size=1`)
    expect((await fixture.call('GET', `${path}?page_size=1&page_token=${page.next_page_token}`)).calls).toMatchObject([
      { tool: 'get_contact' },
    ])
  })
})
