import { createEmulator } from 'emulate'
import { afterAll, describe, expect, test } from 'vitest'
import { findShippedDefinition } from '../../../../src/engine/catalog/index.ts'
import { compilePlan, resolveConfig } from '../../../../src/engine/definitions/index.ts'
import {
  compileJson,
  createEvaluator,
  parentResources,
  renderObject,
} from '../../../../src/engine/expressions/index.ts'
import {
  type AccountAccess,
  createProxy,
  type PageStep,
  type ProxyRequest,
} from '../../../../src/engine/proxy/index.ts'
import { systemClock } from '../../../../src/foundation/base/index.ts'
import { createEgressPolicy, createHttpClient } from '../../../../src/foundation/egress/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'

const TOKEN = 'token-of-octocat'
const github = await createEmulator({
  service: 'github',
  port: 0,
  seed: {
    tokens: { [TOKEN]: { login: 'octocat', scopes: ['repo', 'user'] } },
    github: {
      users: [{ login: 'octocat' }],
      orgs: [{ login: 'acme', members: [{ login: 'octocat', role: 'admin' }] }],
      repos: ['one', 'two', 'three'].map((name) => ({ owner: 'octocat', name, auto_init: true })),
    },
  },
})
const http = createHttpClient({ policy: createEgressPolicy({ allow: '127.0.0.0/8,::1/128' }) })
const evaluator = createEvaluator()
const proxy = createProxy({ http, evaluator, clock: systemClock })
const plan = compilePlan(resolveConfig(findShippedDefinition('github')?.config ?? {}, { base_url: github.url }).config)
const account: AccountAccess = {
  id: 'a',
  context: {},
  credentials: { api_key: TOKEN },
  environmentVariables: {},
  isSandbox: false,
}

afterAll(async () => {
  await evaluator[Symbol.asyncDispose]()
  await http[Symbol.asyncDispose]()
  await github.close()
})

const REPO = { owner: 'octocat', repo: 'one' }

function call(resource: string, method: string, rest: Partial<ProxyRequest> = {}) {
  return proxy.call(plan, account, { target: { kind: 'method', resource, method }, ...rest })
}

async function list(resource: string, rest: Partial<ProxyRequest> = {}): Promise<PageStep[]> {
  const steps: PageStep[] = []
  const request: ProxyRequest = { target: { kind: 'method', resource, method: 'list' }, ...rest }
  for await (const step of proxy.pages(plan, account, request)) steps.push(step)
  return steps
}

const names = (steps: readonly PageStep[], key: string) =>
  steps.flatMap((step) => (step.kind === 'page' ? step.records.map((record) => (record as JsonObject)[key]) : []))

test('a personal access token is proved by its user', async () => {
  expect(await proxy.call(plan, account, { target: { kind: 'verification', credential: 'api_key' } })).toMatchObject({
    kind: 'ok',
    body: { login: 'octocat' },
  })
})

test('repositories are paged by the Link header, at most 100 at a time', async () => {
  const steps = await list('repositories', { page: { limit: 2 } })
  expect(steps.map((step) => (step.kind === 'page' ? step.records.length : step.kind))).toEqual([2, 1])
  expect(steps.at(-1)).toMatchObject({ state: null, stopReason: 'link_absent' })
  expect(names(steps, 'name').sort()).toEqual(['one', 'three', 'two'])
  expect(steps[0]).toMatchObject({
    rateLimit: { limit: '5000', remaining: expect.stringMatching(/^\d+$/), reset: expect.any(String) },
  })
})

test('issues are opened, listed in every state, changed and commented on', async () => {
  const titles = ['first', 'second']
  for (const title of titles)
    expect(await call('issues', 'create', { query: REPO, body: { title } })).toMatchObject({ kind: 'ok', status: 201 })
  expect(await call('issues', 'update', { query: REPO, id: 1, body: { state: 'closed' } })).toMatchObject({
    result: { state: 'closed' },
  })
  expect(names(await list('issues', { query: REPO }), 'title').sort()).toEqual(titles)
  expect(names(await list('issues', { query: { ...REPO, state: 'open' } }), 'title')).toEqual(['second'])
  const query = { ...REPO, issue_number: 2 }
  expect(await call('issue_comments', 'create', { query, body: { body: 'hello' } })).toMatchObject({ status: 201 })
  expect(names(await list('issue_comments', { query }), 'body')).toEqual(['hello'])
})

test('the query of a sync hands owner and name of each repository to the path of its issues', async () => {
  const query = compileJson({
    owner: '{{resources.repositories.owner.login}}',
    repo: '{{resources.repositories.name}}',
  })
  const found: string[] = []
  for (const step of await list('repositories')) {
    for (const repository of step.kind === 'page' ? step.records : []) {
      const resources = parentResources('repositories', repository)
      const issues = await list('issues', { query: renderObject(query, { account, call: { resources } }), resources })
      found.push(`${(repository as JsonObject).name}: ${names(issues, 'title').sort().join(', ')}`)
    }
  }
  expect(found.sort()).toEqual(['one: first, second', 'three: ', 'two: '])
})

describe('every other list answers', () => {
  test.each<[string, JsonObject]>([
    ['users', {}],
    ['organizations', {}],
    ['organization_members', { org: 'acme' }],
    ['teams', { org: 'acme' }],
    ['branches', REPO],
    ['commits', REPO],
    ['labels', REPO],
    ['milestones', REPO],
    ['pull_requests', REPO],
    ['releases', REPO],
  ])('%s', async (resource, query) => {
    expect((await list(resource, { query })).at(-1)).toMatchObject({ kind: 'page', state: null })
  })
})

test('a record is found under its identifier', async () => {
  const commits = await list('commits', { query: REPO })
  const [sha] = names(commits, 'sha')
  expect(plan.resources.get('commits')?.get('list')?.idPath).toEqual(['sha'])
  expect(await call('commits', 'get', { query: REPO, id: String(sha) })).toMatchObject({ kind: 'ok', result: { sha } })
  expect(await call('users', 'get', { id: 'octocat' })).toMatchObject({ result: { login: 'octocat' } })
  expect(await call('organizations', 'get', { id: 'acme' })).toMatchObject({ result: { login: 'acme' } })
})

test('an error carries the message of GitHub', async () => {
  expect(await call('repositories', 'get', { query: { owner: 'octocat', repo: 'missing' } })).toMatchObject({
    kind: 'upstream_error',
    status: 404,
    message: 'Not Found',
    metadata: { documentation_url: expect.any(String) },
    action: 'fail',
  })
})
