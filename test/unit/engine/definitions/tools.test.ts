import { describe, expect, it } from 'vitest'
import { listTools } from '../../../../src/engine/definitions/index.ts'

const QUERY_SCHEMA = { type: 'object', properties: { state: { type: 'string' } }, required: ['state'] }
const BODY_SCHEMA = { type: 'object', properties: { title: { type: 'string' } }, required: ['title'] }

const CONFIG = {
  tool_tags: { issues: ['tracker', 'write'], users: ['people'] },
  resources: {
    users: { get: { path: '/users/{{id}}', description: 'One user.' } },
    issues: {
      list: {
        path: '/repos/{{query.owner}}/{{context.repo}}/issues/{{query.page?:1}}',
        description: 'Issues of a repository.',
        query_schema: QUERY_SCHEMA,
      },
      create: { method: 'POST', path: '/issues', description: 'Opens an issue.', body_schema: BODY_SCHEMA },
      purge: { method: 'POST', path: '/purge' },
    },
    constructor: { list: { path: '/', description: 'A resource with a name of every object.' } },
  },
}

const ALL = { methods: [], tags: [] }
const namesOf = (filter: Parameters<typeof listTools>[1]) => listTools(CONFIG, filter).map(({ name }) => name)

describe('the tools of a definition', () => {
  it('are its described methods, by resource and method', () => {
    expect(namesOf(ALL)).toEqual(['list_constructor', 'create_issues', 'list_issues', 'get_users'])
  })

  it('hand on the schemas as they are written, and the tags of the resource', () => {
    expect(listTools(CONFIG, ALL)[2]).toMatchObject({
      resource: 'issues',
      method: 'list',
      description: 'Issues of a repository.',
      tags: ['tracker', 'write'],
      querySchema: QUERY_SCHEMA,
      bodySchema: {},
    })
  })

  it('require what the schemas do, and what the path cannot be written without', () => {
    const required = Object.fromEntries(listTools(CONFIG, ALL).map((tool) => [tool.name, tool.required]))
    expect(required).toEqual({
      list_constructor: [],
      create_issues: ['body.title'],
      list_issues: ['query.owner', 'query.state'],
      get_users: ['id'],
    })
  })

  it.each([
    [{ methods: ['list'], tags: [] }, ['list_constructor', 'list_issues']],
    [{ methods: ['list', 'get'], tags: [] }, ['list_constructor', 'list_issues', 'get_users']],
    [{ methods: [], tags: ['people'] }, ['get_users']],
    [{ methods: ['get'], tags: ['tracker'] }, []],
    [{ methods: ['purge'], tags: [] }, []],
    [{ methods: [], tags: ['unused'] }, []],
  ])('are narrowed by %j', (filter, names) => {
    expect(namesOf(filter)).toEqual(names)
  })

  it('are none of a definition without resources', () => {
    expect(listTools({}, ALL)).toEqual([])
  })
})
