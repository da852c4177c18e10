import { readFileSync } from 'node:fs'
import { afterAll, expect, test } from 'vitest'
import { compilePlan } from '../../../src/engine/definitions/index.ts'
import { createEvaluator } from '../../../src/engine/expressions/index.ts'
import { createProxy } from '../../../src/engine/proxy/index.ts'
import { systemClock } from '../../../src/foundation/base/index.ts'
import { createEgressPolicy, createHttpClient } from '../../../src/foundation/egress/index.ts'
import type { JsonObject } from '../../../src/foundation/json/index.ts'
import { OWNER, startGitHub } from './github.ts'

const github = await startGitHub()
const http = createHttpClient({ policy: createEgressPolicy({ allow: '127.0.0.0/8' }) })
afterAll(async () => {
  await github[Symbol.asyncDispose]()
  await http[Symbol.asyncDispose]()
})

/** The definition that the README writes. */
function definitionOfReadme(): JsonObject {
  const readme = readFileSync(new URL('../../../README.md', import.meta.url), 'utf8')
  const [, text = '{}'] = /tracker\.json <<'JSON'\n([\s\S]*?)\nJSON\n/.exec(readme) ?? []
  return JSON.parse(text).config
}

test('the definition of the README reads every page, although GitHub links the second by the id of the repository', async () => {
  const config = { ...definitionOfReadme(), base_url: github.url }
  const proxy = createProxy({ http, evaluator: createEvaluator(), clock: systemClock })
  const access = {
    id: 'a',
    isSandbox: false,
    context: {},
    environmentVariables: {},
    credentials: { api_key: github.token },
  }
  const target = { kind: 'method', resource: 'tickets', method: 'list' } as const
  const request = { target, query: { owner: OWNER, project: 'hello-world', state: 'all' }, page: { limit: 3 } }
  const pages = []
  for await (const step of proxy.pages(compilePlan(config), access, request)) pages.push(step)
  expect(pages.map((step) => (step.kind === 'page' ? step.records.length : step.kind))).toEqual([3, 3, 1])
  const [first] = pages
  const link = first?.kind === 'page' ? first.headers?.link : ''
  expect(link).toMatch(/<http:\/\/127\.0\.0\.1:\d+\/repositories\/\d+\/issues\?.*page=2.*>; rel="next"/)
})
