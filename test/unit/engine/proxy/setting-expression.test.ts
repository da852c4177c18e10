import { describe, expect, test } from 'vitest'
import { compilePlan } from '../../../../src/engine/definitions/index.ts'
import type { EvaluationLimits } from '../../../../src/engine/expressions/sandbox-evaluation.ts'
import { createProxy } from '../../../../src/engine/proxy/index.ts'
import { systemClock } from '../../../../src/foundation/base/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
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

describe('environment variables', () => {
  let count = 0
  /** Every expression is another one, so that each of their evaluations is told apart. */
  const e = () => `env.REGION & env.API_SECRET & "${++count}"`
  const config = {
    base_url: 'https://api.example',
    error_expression: e(),
    rate_limit: { is_rate_limited: e(), rate_limit_header_expression: e() },
    authorization: { format: 'header', config: { expression: e() } },
    resources: {
      cursor: {
        list: {
          path: '/',
          pagination: {
            format: 'cursor',
            config: { stop_expression: e(), has_more_expression: e(), cursor_key: 'c', cursor_expression: e() },
          },
        },
      },
      dynamic: {
        list: {
          path: '/',
          pagination: {
            format: 'dynamic',
            config: {
              get_initial_pagination_values_expression: e(),
              get_pagination_values_expression: e(),
              get_cursor_from_response_expression: e(),
            },
          },
        },
      },
      limited: { list: { path: '/limited', rate_limit: { retry_after_header_expression: e() } } },
    },
    actions: {
      change: {
        steps: [
          { type: 'transform', config: e(), run_if: e() },
          { type: 'update_context', config: e() },
        ],
      },
    },
  }
  const account = {
    id: 'a',
    isSandbox: false,
    context: {},
    credentials: {},
    environmentVariables: { REGION: 'eu', API_SECRET: 'canary-1', OTHER_SECRET: 'canary-2' },
  }

  test('are roots of every expression, without the secrets that it does not name', async () => {
    const seen = new Map<string, JsonObject>()
    const proxy = createProxy({
      http: {
        send: async ({ url }) => ({
          status: url.endsWith('/limited') ? 429 : 200,
          headers: {},
          body: Buffer.from('[{"id": 1}]'),
          url,
        }),
        stream: refuse,
      },
      clock: systemClock,
      evaluator: {
        evaluate: async (expression, roots) => {
          seen.set(String(expression), roots)
          const isAboutResponse = 'response' in roots || 'total_seen' in roots
          return isAboutResponse && !('paginationValues' in roots) ? undefined : { x: '1' }
        },
      },
    })
    const plan = compilePlan(config)
    for (const resource of Object.keys(config.resources)) await proxy.call(plan, account, on(resource, 'list'))
    await proxy.runAction(plan, account, { target: { kind: 'action', action: 'change' } })
    expect(seen.size, 'every expression is evaluated').toBe(count)
    const env = { REGION: 'eu', API_SECRET: 'canary-1' }
    for (const roots of seen.values()) expect(roots).toMatchObject({ env, environment_variables: env })
    expect(JSON.stringify([...seen.values()])).not.toContain('canary-2')
  })

  test('are no roots of response_path, which sees the body alone', async () => {
    const method = { path: '/x', response_path: '$.env' }
    engine.upstream.script({ request: 'GET /x', answer: { json: { env: 'of the body' } } })
    const outcome = await engine.call({ resources: { x: { get: method } } }, on('x', 'get'), {
      environmentVariables: { REGION: 'eu' },
    })
    expect(outcome).toMatchObject({ kind: 'ok', result: 'of the body' })
  })

  test('that an error quotes are masked', async () => {
    const error = '{"status": 400, "message": "wrong key " & env.API_SECRET, "metadata": {"key": env.API_SECRET}}'
    engine.upstream.script({ request: 'GET /things/1', answer: { json: {} } })
    const { resources } = { resources: { things: { get: { path: '/things/{{id}}' } } } }
    const outcome = await engine.call(
      { resources, error_expression: error },
      { ...on('things', 'get'), id: 1 },
      account,
    )
    expect(outcome).toMatchObject({ kind: 'upstream_error', message: 'wrong key ***', metadata: { key: '***' } })
  })
})

async function refuse(): Promise<never> {
  throw new Error('nothing is streamed here')
}
