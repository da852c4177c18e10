import { describe, expect, it } from 'vitest'
import { compilePlan } from '../../../../src/engine/definitions/index.ts'
import type { ApiProxy, CallTarget } from '../../../../src/engine/proxy/index.ts'
import { createProxySource } from '../../../../src/sync/jobs/page-source.ts'

const request = (path: string) => ({ type: 'request', config: { path } })
const plan = compilePlan({
  base_url: 'https://api.example.com',
  resources: { repos: { list: { path: '/{{resources.orgs.name}}/repos' } } },
  actions: { search: request('/{{resources.orgs.id}}/search') },
})
const access = { id: 'a', isSandbox: false, context: {}, credentials: {}, environmentVariables: {} }

describe('a source of pages', () => {
  it.each<[string, string, CallTarget]>([
    ['repos', 'list', { kind: 'method', resource: 'repos', method: 'list' }],
    ['_', 'search', { kind: 'action', action: 'search' }],
  ])('reads %s.%s', async (resource, method, target) => {
    const asked: CallTarget[] = []
    const proxy: Pick<ApiProxy, 'pages'> = {
      async *pages(_plan, _access, call) {
        asked.push(call.target)
        yield { kind: 'page', page: 1, records: [1], state: null, stopReason: 'unpaginated', rateLimit: undefined }
      },
    }
    const source = createProxySource(proxy, plan, access)
    const { signal } = new AbortController()
    const pages = source.pages({ resource, method, query: {}, args: {}, resources: {} }, null, signal)
    for await (const page of pages) expect(page).toMatchObject({ records: [1], state: null, stopReason: 'unpaginated' })
    expect(asked).toEqual([target])
  })

  it.each([
    ['repos', 'list', [['orgs', 'name']]],
    ['_', 'search', [['orgs', 'id']]],
    ['_', 'unknown', []],
  ])('tells what %s.%s reads of parent records', (resource, method, paths) => {
    const source = createProxySource({ pages: () => expect.unreachable() }, plan, access)
    expect([...new Set(source.parentPaths?.(resource, method).map(String))]).toEqual(paths.map(String))
  })
})
