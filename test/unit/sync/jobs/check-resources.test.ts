import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import {
  checkAgainstDefinition,
  checkRequiredInput,
  checkResources,
  methodNamesOf,
} from '../../../../src/sync/jobs/check-resources.ts'
import { compileSyncPlan } from '../../../../src/sync/jobs/plan.ts'
import type { SyncResource } from '../../../../src/sync/jobs/resource.ts'

const repos: SyncResource = { resource: 'repos', method: 'list' }
const issues: SyncResource = {
  resource: 'issues',
  method: 'list',
  depends_on: 'repos',
  query: { repo: '{{resources.repos.full_name}}' },
}

function found(resources: readonly SyncResource[]): string[][] {
  return checkResources(resources).map(({ field, rule }) => [field, rule])
}

describe('resources of a job', () => {
  it('that form a plan pass', () => {
    expect(
      checkResources([
        repos,
        issues,
        {
          resource: 'crm/notes',
          method: 'list',
          depends_on: 'issues',
          persist: true,
          loop_on: 'kinds',
          id: '{{resources.repos.id}}-{{resources.issues.number}}-{{args.kinds}}',
          query: {
            since: '{{previous_run_date}}',
            site: '{{context.site|env.SITE?:none}}',
            deep: [{ x: '{{args.y}}' }],
          },
        },
        { resource: 'notes', method: 'get', depends_on: 'crm/notes', id: '{{resources.crm.notes.id}}' },
      ]),
    ).toEqual([])
  })

  it.each<{ name: string; resources: SyncResource[]; findings: string[][] }>([
    { name: 'nothing at all', resources: [], findings: [['resources', 'resources.count']] },
    {
      name: 'too many',
      resources: Array(1_001).fill(repos),
      findings: [['resources', 'resources.count']],
    },
    {
      name: 'an unknown parent',
      resources: [{ ...repos, depends_on: 'orgs' }],
      findings: [['resources[0].depends_on', 'resources.unknown_parent']],
    },
    {
      name: 'itself as parent',
      resources: [{ ...repos, depends_on: 'repos' }],
      findings: [['resources[0].depends_on', 'resources.circle']],
    },
    {
      name: 'a circle',
      resources: [
        { resource: 'a', method: 'list', depends_on: 'c' },
        { resource: 'b', method: 'list', depends_on: 'a' },
        { resource: 'c', method: 'list', depends_on: 'b' },
        { resource: 'd', method: 'list', depends_on: 'a' },
      ],
      findings: [0, 1, 2].map((index) => [`resources[${index}].depends_on`, 'resources.circle']),
    },
    {
      name: 'a parent that is there twice',
      resources: [repos, repos, { ...issues, query: {} }],
      findings: [['resources[2].depends_on', 'resources.ambiguous_parent']],
    },
    {
      name: 'six levels',
      resources: ['a', 'b', 'c', 'd', 'e', 'f'].map((resource, index, names) => ({
        resource,
        method: 'list',
        ...(index === 0 ? {} : { depends_on: String(names[index - 1]) }),
      })),
      findings: [['resources[5].depends_on', 'resources.depth']],
    },
    {
      name: 'a name with three parts',
      resources: [{ resource: 'a/b/c', method: 'list' }],
      findings: [['resources[0].resource', 'resources.name']],
    },
    {
      name: 'loop_on as a path or template',
      resources: [
        { ...repos, loop_on: 'args.teams' },
        { ...repos, loop_on: '{{args.teams}}' },
      ],
      findings: [0, 1].map((index) => [`resources[${index}].loop_on`, 'resources.loop_on']),
    },
    {
      name: 'a broken template deep in a query',
      resources: [{ ...repos, query: { filter: { any: ['ok', '{{args.x'] } } }],
      findings: [['resources[0].query.filter.any[1]', 'placeholder.syntax']],
    },
    {
      name: 'roots that a job cannot see',
      resources: [{ ...repos, id: '{{repo}}', query: { a: '{{oauth.token.access_token}}', b: '{{pagination.page}}' } }],
      findings: [
        ['resources[0].id', 'placeholder.root'],
        ['resources[0].query.a', 'placeholder.root'],
        ['resources[0].query.b', 'placeholder.root'],
      ],
    },
    {
      name: 'a parent record without depends_on, and one of a otherTenant',
      resources: [
        { ...repos, id: '{{resources.issues.id}}' },
        { ...issues, id: '{{resources.issues.id}}' },
      ],
      findings: [
        ['resources[0].id', 'placeholder.parent'],
        ['resources[1].id', 'placeholder.parent'],
      ],
    },
  ])('are refused with $name', ({ resources, findings }) => {
    expect(found(resources)).toEqual(findings)
  })

  it('may repeat a name when nothing depends on it', () => {
    expect(checkResources([repos, { ...repos, query: { type: 'fork' } }])).toEqual([])
  })

  it('become waves: parents first, the order of the user within', () => {
    const { levels: waves } = compileSyncPlan([issues, repos, { resource: 'users', method: 'list' }])
    expect(waves.map((wave) => wave.map(({ resource }) => resource))).toEqual([['repos', 'users'], ['issues']])
  })
})

describe('a definition', () => {
  const config = { resources: { repos: { list: {}, get: {} } } }
  const offered = methodNamesOf(config, { resources: { repos: { get: null }, teams: { list: {} } } })

  it('offers what is left of it under the override', () => {
    expect(offered).toEqual({ repos: ['list'], teams: ['list'] })
  })

  it('offers its actions under the resource _, but those that belong to connecting', () => {
    const actions = { search: {}, post_install: {}, validation: {}, refresh_token: {}, post_connect_user_form: {} }
    expect(methodNamesOf({ actions }, { actions: { look: {} } })).toEqual({ _: ['search', 'look'] })
    expect(methodNamesOf({ actions: { validation: {} } }, {})).toEqual({})
  })

  it.each([
    { resource: 'repos', method: 'list', field: undefined },
    { resource: 'teams', method: 'list', field: undefined },
    { resource: 'repos', method: 'get', field: 'resources[0].method' },
    { resource: 'users', method: 'list', field: 'resources[0].resource' },
    { resource: 'crm/contacts', method: 'list', field: undefined },
    { resource: 'crm/deals', method: 'like', field: undefined },
    { resource: 'constructor', method: 'list', field: 'resources[0].resource' },
  ])('$resource $method: $field', ({ resource, method, field }) => {
    expect(checkAgainstDefinition([{ resource, method }], offered)[0]?.field).toBe(field)
  })

  it.each([
    { resource: 'repo', method: 'list', near: 'did you mean repos?' },
    { resource: 'repos', method: 'lst', near: 'did you mean list?' },
  ])('suggests a name for $resource $method', ({ resource, method, near }) => {
    expect(checkAgainstDefinition([{ resource, method }], offered)[0]?.description).toContain(near)
  })

  it('names what it has in alphabetical order', () => {
    const methods = { crew: ['list'], authors: ['list'], books: ['list'] }
    const [violation] = checkAgainstDefinition([{ resource: 'x', method: 'list' }], methods)
    expect(violation?.description).toContain('there are authors, books, crew')
  })
})

describe('parameters that a method requires', () => {
  const issuesOf = { depends_on: 'repos' }
  const issues = {
    list: {
      path: '/repos/{{query.owner}}/{{query.repo}}/issues',
      query: { state: 'all' },
      query_schema: { type: 'object', required: ['owner', 'repo', 'state', 'version', 'filter[kind]'] },
    },
    all: { path: '/issues', query_schema: { required: 'owner' } },
  }
  const config = { query: { version: '2' }, resources: { issues } }
  const filter = { kind: 'bug' }

  it.each([
    { name: 'none given', method: 'list', query: undefined, missing: ['owner', 'repo', 'filter[kind]'] },
    { name: 'one given', method: 'list', query: { owner: 'octocat', filter }, missing: ['repo'] },
    {
      name: 'all given, one of them by its parent and one as a nested key',
      method: 'list',
      query: { owner: '{{args.owner}}', repo: '{{resources.repos.name}}', filter },
      missing: [],
    },
    { name: 'a schema that requires nothing', method: 'all', query: undefined, missing: [] },
    { name: 'an unknown method', method: 'toString', query: undefined, missing: [] },
  ])('$name', ({ method, query, missing }) => {
    const node = { resource: 'issues', method, ...(query === undefined ? {} : { query }) }
    const found = checkRequiredInput([{ resource: 'repos', method: 'list' }, node], config)
    expect(found.map(({ field }) => field)).toEqual(missing.map((name) => `resources[1].query.${name}`))
  })

  const path = '/repos/{{query.owner}}/{{query.repo}}'
  const listed = (name: string) => ({ path: '/items', query_schema: { required: [name] } })
  const pagination = { format: 'offset', config: { limit_key: 'size', offset_key: 'from' } }

  it.each<{ name: string; spec: JsonObject; node?: Partial<SyncResource>; above?: JsonObject; fields: string[] }>([
    { name: 'parameters of the path', spec: { path }, fields: ['query.owner', 'query.repo'] },
    { name: 'a parent without a template', spec: { path: '/{{query.a}}' }, node: issuesOf, fields: ['query.a'] },
    { name: 'a loop without a template', spec: { path: '/{{query.a}}' }, node: { loop_on: 'a' }, fields: ['query.a'] },
    { name: 'the id of the path', spec: { path: '/{{id}}' }, fields: ['id'] },
    { name: 'an id that is given', spec: { path: '/{{id}}' }, node: { id: '{{args.id}}' }, fields: [] },
    { name: 'placeholders with a default', spec: { path: '/{{query.a?:0}}/{{id?:me}}' }, fields: [] },
    { name: 'an alternative', spec: { ...listed('a'), path: '/{{query.a|workspace}}' }, fields: [] },
    { name: 'values of others', spec: { path: '/{{context.a}}/{{args.b}}/{{resources.c.d}}' }, fields: [] },
    {
      name: 'what its query only hands on',
      spec: { ...listed('a'), query: { a: '{{query.a}}' } },
      fields: ['query.a'],
    },
    { name: 'what its query defaults', spec: { ...listed('a'), query: { b: '{{query.a?:1}}' } }, fields: [] },
    { name: 'paging', spec: listed('size'), above: { pagination }, fields: [] },
    { name: 'no paging', spec: { ...listed('size'), pagination: null }, above: { pagination }, fields: ['query.size'] },
  ])('$name: $fields', ({ spec, node, above, fields }) => {
    const definition = { ...above, resources: { items: { read: spec } }, actions: { read: spec } }
    for (const resource of ['items', '_']) {
      const found = checkRequiredInput([{ resource, method: 'read', ...node }], definition)
      expect(found.map(({ field }) => field)).toEqual(fields.map((field) => `resources[0].${field}`))
    }
  })

  it('are looked for in unified resources by their mapping alone', () => {
    expect(checkRequiredInput([{ resource: 'ticketing/issues', method: 'list' }], config)).toEqual([])
  })
})
