import { describe, expect, it } from 'vitest'
import { findShippedDefinition } from '../../../../src/engine/catalog/index.ts'
import { newId } from '../../../../src/foundation/base/index.ts'
import { execute, jsonb } from '../../../../src/foundation/database/index.ts'
import { isJsonObject, type JsonObject } from '../../../../src/foundation/json/index.ts'
import { API_KEY, type CreatedServer, startToolServerFixture } from '../servers/fixture.ts'
import { callTool, connectClient } from './client.ts'

/** A shipped definition that is sent to the scripted upstream instead. */
function workable(baseUrl: string): JsonObject {
  const { config = {} } = findShippedDefinition('workable') ?? {}
  if (!isJsonObject(config)) throw new Error('the definition has no config')
  return { ...config, base_url: baseUrl }
}

const fixture = await startToolServerFixture({
  define: workable,
  integrationName: 'workable',
  credentials: { subdomain: 'acme', api_key: API_KEY },
})
const { app, upstream, accountId, createServer } = fixture
const { pool } = app.database

/** One request without a client, which would keep the list. */
async function listTools({ url, token }: CreatedServer): Promise<readonly JsonObject[]> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
  })
  const text = await answer.text()
  return JSON.parse(text.slice(text.indexOf('{'))).result.tools
}

const namesOf = async (server: CreatedServer) => (await listTools(server)).map(({ name }) => name)

/** How many statements a piece of work sends at least: what is cached for half a second is read now and then. */
async function statementsOf(work: () => Promise<unknown>): Promise<number> {
  const counts: number[] = []
  for (let round = 0; round < 5; round++) {
    let count = 0
    const onQuery = () => {
      count += 1
    }
    pool.on('query', onQuery)
    await work().finally(() => pool.removeListener('query', onQuery))
    counts.push(count)
  }
  return Math.min(...counts)
}

// Rows are written as another process writes them: this one is not notified of it.
describe('the tools of a server', () => {
  it('follow the mappings that another process stores and deletes', async () => {
    const server = await createServer({ is_read_only: false, mode: 'direct' })
    const before = await namesOf(server)
    expect(before).not.toContain('delete_ats_job')
    const id = newId()
    await execute(
      pool,
      `insert into unified_mapping (id, team_id, environment_id, integrated_account_id, model, resource, integration_name, method, config)
       select :id, team_id, id, :accountId, 'ats', 'jobs', 'workable', 'delete', :config from environment
       where id = :environmentId`,
      {
        id,
        accountId,
        environmentId: app.first.environmentId,
        config: jsonb({ resource: 'jobs', method: 'get' }),
      },
    )
    expect(await namesOf(server)).toContain('delete_ats_job')
    await execute(pool, 'delete from unified_mapping where id = :id', { id })
    expect(await namesOf(server)).toEqual(before)
  })

  it('follow the model that another process extends', async () => {
    const server = await createServer({ filter: { include_names: ['get_ats_job'] } })
    const schemaOf = async () => JSON.stringify(await listTools(server))
    expect(await schemaOf()).not.toContain('of_this_team')
    await execute(
      pool,
      `insert into unified_model (id, team_id, name, config)
       select :id, team_id, 'ats', :config from environment where id = :environmentId`,
      {
        id: newId(),
        environmentId: app.first.environmentId,
        config: jsonb({
          resources: { jobs: { schema: { type: 'object', properties: { of_this_team: { type: 'string' } } } } },
        }),
      },
    )
    expect(await schemaOf()).toContain('of_this_team')
  })

  it('follow the account: a call fails once another process has disabled its installation', async () => {
    const client = await connectClient(await createServer(), 'modern')
    const job = { id: '1', shortcode: 'ABC', title: 'Engineer', state: 'published' }
    upstream.script({ request: 'GET /jobs/ABC', answer: { json: job } })
    expect((await callTool(client, 'get_ats_job', { id: 'ABC' })).isError).toBe(false)
    const set = `update environment_integration set is_enabled = :isEnabled, version = version + 1 where id = :id`
    await execute(pool, set, { id: fixture.environmentIntegrationId, isEnabled: false })
    const { structured } = await callTool(client, 'get_ats_job', { id: 'ABC' })
    await execute(pool, set, { id: fixture.environmentIntegrationId, isEnabled: true })
    expect(structured).toMatchObject({ error: { message: expect.stringContaining('disabled') } })
  })
})

describe('a request', () => {
  it('costs few statements once its tools are derived', async () => {
    const server = await createServer({ limits: { requests_per_minute: 1_000 } })
    const client = await connectClient(server, 'modern')
    // The count of requests, and the state of what the tools are derived from.
    expect(await statementsOf(() => listTools(server))).toBe(2)
    const script = { request: 'GET /jobs/ABC', answer: { json: { id: '1', shortcode: 'ABC' } } } as const
    for (let round = 0; round < 5; round++) upstream.script(script)
    // With them the account with its secrets, and the record.
    expect(await statementsOf(() => callTool(client, 'get_ats_job', { id: 'ABC' }))).toBe(4)
  })
})
