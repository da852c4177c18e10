import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it } from 'vitest'
import { findShippedDefinition } from '../../../../src/engine/catalog/index.ts'
import { isJsonObject, type JsonObject } from '../../../../src/foundation/json/index.ts'
import { API_KEY, startToolServerFixture } from '../servers/fixture.ts'
import { callTool, connectClient } from './client.ts'

/** A shipped definition that is sent to the scripted upstream instead. */
function workable(baseUrl: string): JsonObject {
  const { config = {} } = findShippedDefinition('workable') ?? {}
  if (!isJsonObject(config)) throw new Error('the definition has no config')
  return { ...config, base_url: baseUrl }
}

const { upstream, createServer, call } = await startToolServerFixture({
  define: workable,
  integrationName: 'workable',
  credentials: { subdomain: 'acme', api_key: API_KEY },
})
const UNIFIED = { filter: { sources: ['unified'] } }

describe('unified resources as tools', () => {
  it('are named after their model, with the fields of the model as arguments and result', async () => {
    const { id } = await createServer({ ...UNIFIED, is_read_only: false })
    const { tools, warnings } = await call('GET', `/tool-server/${id}/tools`)
    expect(warnings).toEqual([])
    const byName = new Map((tools as readonly JsonObject[]).map((tool) => [tool.name, tool]))
    expect([...byName.keys()]).toEqual(expect.arrayContaining(['list_ats_jobs', 'get_ats_job', 'create_ats_candidate']))
    expect(byName.get('list_ats_jobs')).toMatchObject({
      source: 'unified',
      resource: 'ats/jobs',
      method: 'list',
      input_schema: { properties: { status: {}, updated_at_gte: {}, limit: {}, cursor: {}, fields: {} } },
      output_schema: { properties: { records: { type: 'array' } } },
    })
    const create = byName.get('create_ats_candidate')?.input_schema as JsonObject
    expect(create.properties).not.toHaveProperty('id')
    expect(create.properties).toMatchObject({ first_name: {}, dry_run: {} })
  })

  it('are called in the shape of the model', async () => {
    const client = await connectClient(await createServer(UNIFIED), 'modern')
    const job = { id: '1', shortcode: 'ABC', title: 'Engineer', state: 'published' }
    upstream.script({
      request: 'GET /jobs?state=published&limit=20',
      answer: { json: { jobs: [job] } },
    })
    const { structured, isError } = await callTool(client, 'list_ats_jobs', {
      status: 'open',
      fields: ['name', 'status'],
    })
    expect(isError).toBe(false)
    expect(structured).toEqual({ records: [{ id: 'ABC', name: 'Engineer', status: 'open' }], next_cursor: null })
  })

  it.each([
    ['list_ats_jobs', {}, ['nmae', 'name', 'custom_fields.any', 'status_raw'], 0, 'name'],
    ['get_ats_job', { id: 'ABC' }, ['id', 'stauts'], 1, 'status'],
  ])('say that the fields asked of %s are not those of the model', async (tool, args, fields, at, meant) => {
    const client = await connectClient(await createServer(UNIFIED), 'modern')
    const { structured } = await callTool(client, tool, { ...args, fields })
    expect(structured).toMatchObject({
      error: {
        type: 'validation',
        fields: [{ field: `fields[${at}]`, description: expect.stringMatching(`${fields[at]} is not .*${meant}`) }],
      },
    })
  })

  it('fail like any tool, whatever their result looks like otherwise', async () => {
    const client = await connectClient(await createServer(UNIFIED), 'modern')
    upstream.script({ request: 'GET /jobs?limit=20', answer: { status: 403, json: { error: 'no scope' } } })
    expect((await callTool(client, 'list_ats_jobs', {})).structured).toEqual({
      error: { type: 'forbidden', status: 403, message: 'no scope', log_id: expect.any(String) },
    })
  })

  it.each([{ jobs: 'all' }, { limit: 'many' }, { fields: ['nmae'] }, {}])(
    'answer errors of %j that fit the schema of their result, which clients check',
    async (args) => {
      const client = await connectClient(await createServer(UNIFIED), 'modern')
      const { tools } = await client.listTools()
      const { outputSchema = {} } = tools.find(({ name }) => name === 'list_ats_jobs') ?? {}
      if (Object.keys(args).length === 0)
        upstream.script({ request: 'GET /jobs?limit=20', answer: { status: 403, json: { error: 'no scope' } } })
      const { structured, isError } = await callTool(client, 'list_ats_jobs', args)
      expect(isError).toBe(true)
      const ajv = new Ajv2020({ strict: false })
      expect(ajv.validate(outputSchema as object, structured), ajv.errorsText()).toBe(true)
    },
  )

  it('show the request of a write that is not sent', async () => {
    const client = await connectClient(await createServer({ ...UNIFIED, is_read_only: false }), 'modern')
    const args = { id: 'c1', first_name: 'Ada', dry_run: true }
    const { structured } = await callTool(client, 'update_ats_candidate', args)
    expect(structured).toMatchObject({ dry_run: true, request: { body: expect.stringContaining('Ada') } })
  })

  it('show with it what is not sent and which steps are not run, and advise nothing that a tool does not take', async () => {
    const client = await connectClient(await createServer({ ...UNIFIED, is_read_only: false }), 'modern')
    const args = { id: 'c1', first_name: 'Ada', company: 'Engines', dry_run: true }
    const { structured, text } = await callTool(client, 'update_ats_candidate', args)
    expect(structured).toMatchObject({
      warnings: [{ field: 'company', message: 'the mapping of this integration does not send it' }],
      skipped_steps: ['candidate'],
    })
    expect(text).not.toContain('remote_fields')
  })

  it('say which values of a write are wrong before anything is sent', async () => {
    const client = await connectClient(await createServer({ ...UNIFIED, is_read_only: false }), 'modern')
    const { structured } = await callTool(client, 'create_ats_candidate', { first_name: 5 })
    expect(structured).toMatchObject({ error: { type: 'validation', fields: expect.any(Array) } })
  })

  it('write nothing as tools that read, even where a mapping names a method that writes', async () => {
    const server = await createServer(UNIFIED)
    const mapping = await call('POST', '/unified-mapping', {
      scope: 'environment',
      model: 'ats',
      resource: 'candidates',
      integration_name: 'workable',
      method: 'get',
      config: { method: 'create', request: { query: { shortcode: "'ABC'" }, body: { name: "'planted'" } } },
    })
    const client = await connectClient(server, 'modern')
    const { structured } = await callTool(client, 'get_ats_candidate', { id: 'c1' })
    expect(structured).toMatchObject({ error: { type: 'forbidden', message: expect.stringContaining('mapping') } })
    await call('DELETE', `/unified-mapping/${mapping.id}`)
  })
})
