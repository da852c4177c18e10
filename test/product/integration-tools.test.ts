import { describe, expect, it } from 'vitest'
import { IntegrationService } from '../../gen/patchbay/v1/integration_service_pb.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import { freshName, idOf } from '../support/seeded-tenant.ts'

const QUERY_SCHEMA = { type: 'object', properties: { state: { enum: ['open', 'closed'] } } }
const CONFIG = {
  base_url: 'https://api.example.com',
  tool_tags: { issues: ['tracker'] },
  resources: {
    issues: {
      list: { path: '/issues', description: 'Issues, newest first.', query_schema: QUERY_SCHEMA },
      create: { method: 'POST', path: '/issues', description: 'Opens an issue.', body_schema: { required: ['title'] } },
      get: { path: '/issues/{{id}}' },
    },
    users: { get: { path: '/users/{{id}}', description: 'One user.' } },
  },
}

const app = await startTestApp()
const { createIntegration, listIntegrationTools: list } = IntegrationService.method
const team = app.client('connect', { token: app.first.teamToken })
const id = await idOf(team, createIntegration, { name: freshName('tools'), config: CONFIG })

describe.each(inTurn(app.clients()))('the tools of an integration over $wire', (client) => {
  const namesOf = async (filter: JsonObject) =>
    ((await client.ok(list, { id, ...filter })).tools as readonly JsonObject[]).map(({ name }) => name)

  it('are its described methods, with what it says of them', async () => {
    expect(await client.ok(list, { id })).toEqual({
      tools: [
        {
          name: 'create_issues',
          resource: 'issues',
          method: 'create',
          description: 'Opens an issue.',
          tags: ['tracker'],
          query_schema: {},
          body_schema: { required: ['title'] },
          required: ['body.title'],
        },
        {
          name: 'list_issues',
          resource: 'issues',
          method: 'list',
          description: 'Issues, newest first.',
          tags: ['tracker'],
          query_schema: QUERY_SCHEMA,
          body_schema: {},
          required: [],
        },
        {
          name: 'get_users',
          resource: 'users',
          method: 'get',
          description: 'One user.',
          tags: [],
          query_schema: {},
          body_schema: {},
          required: ['id'],
        },
      ],
    })
  })

  it.each<[JsonObject, readonly string[]]>([
    [{ methods: ['get', 'create'] }, ['create_issues', 'get_users']],
    [{ tags: ['tracker'] }, ['create_issues', 'list_issues']],
    [{ methods: ['list'], tags: ['tracker', 'people'] }, ['list_issues']],
    [{ tags: ['people'] }, []],
  ])('are narrowed by %j', async (filter, names) => {
    expect(await namesOf(filter)).toEqual(names)
  })

  it('are rejected a filter that is empty', async () => {
    const { violations } = await client.callError(list, { id, tags: [''] })
    expect(violations).toMatchObject([{ field: 'tags[0]', rule: 'string.min_len' }])
  })
})
