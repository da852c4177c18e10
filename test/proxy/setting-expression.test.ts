import { describe, expect, test } from 'vitest'
import { type JsonObject, systemClock } from '../../src/base/index.ts'
import { compilePlan } from '../../src/definitions/index.ts'
import type { EvaluationLimits } from '../../src/expressions/sandbox-evaluation.ts'
import { createProxy } from '../../src/proxy/index.ts'
import { failureOf, on, startEngine } from './engine.ts'

const engine = await startEngine()
const CONFIG = { resources: { things: { get: { path: '/things/{{id}}' } } } }

describe('an expression that fails', () => {
  test.each<[string, JsonObject]>([
    ['error_expression', { error_expression: '$number("x")' }],
    ['rate_limit.is_rate_limited', { rate_limit: { is_rate_limited: '$number("x")' } }],
    ['rate_limit.rate_limit_header_expression', { rate_limit: { rate_limit_header_expression: '$number("x")' } }],
    ['authorization', { authorization: { format: 'header', config: { expression: '$number("x")' } } }],
  ])('is named: %s', async (setting, settings) => {
    if (setting !== 'authorization') engine.upstream.script({ request: 'GET /things/1', answer: { json: 1 } })
    const call = engine.call({ ...CONFIG, ...settings }, { ...on('things', 'get'), id: 1 })
    expect(await failureOf(call)).toContain(`EXPRESSION_FAILED: ${setting}: `)
  })
})

describe('expressions see whole pages', () => {
  const items = Array.from({ length: 20_000 }, (_, id) => ({ id, text: 'x'.repeat(100) }))

  test('of several MiB, and may return as much', async () => {
    const method = { path: '/x', response_path: '$map(items, function($i) { $i })' }
    engine.upstream.script({ request: 'GET /x', answer: { json: { items } } })
    const outcome = await engine.call({ resources: { x: { get: method } } }, on('x', 'get'))
    expect(outcome.kind === 'ok' && outcome.result).toHaveLength(20_000)
  })
})

test('expressions are evaluated on behalf of the environment of the account', async () => {
  const asked: (string | undefined)[] = []
  const proxy = createProxy({
    http: { send: async ({ url }) => ({ status: 200, headers: {}, body: Buffer.from('{}'), url }), stream: refuse },
    clock: systemClock,
    evaluator: {
      evaluate: async (_expression, _roots, limits: EvaluationLimits = {}) => void asked.push(limits.owner),
    },
  })
  const plan = compilePlan({ base_url: 'https://api.example', error_expression: 'body.error', ...CONFIG })
  const values = { context: {}, credentials: {}, environmentVariables: {} }
  for (const environmentId of ['env-1', undefined])
    await proxy.call(plan, { id: 'a', isSandbox: false, environmentId, ...values }, { ...on('things', 'get'), id: 1 })
  expect(asked).toEqual(['env-1', undefined])
})

async function refuse(): Promise<never> {
  throw new Error('nothing is streamed here')
}
