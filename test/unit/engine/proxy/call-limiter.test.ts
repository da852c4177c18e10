import { beforeEach, expect, test } from 'vitest'
import type { CallLimiter, CallPermit, RateLimitInfo } from '../../../../src/engine/proxy/index.ts'
import { failureOf, on, startEngine } from './engine.ts'

/** Budgets that grant what a test says, and write down what happens to them. */
const shared = { journal: [] as string[], learned: [] as RateLimitInfo[], limitedAfter: Number.POSITIVE_INFINITY }
const callLimiter: CallLimiter = {
  acquire: async ({ resource, method }, { id }): Promise<CallPermit> => {
    shared.journal.push(`acquire ${resource}.${method} of ${id}`)
    if (shared.limitedAfter === 0) return { kind: 'limited', retryAfterSeconds: 7 }
    shared.limitedAfter -= 1
    return {
      kind: 'granted',
      release: async () => {
        shared.journal.push('release')
      },
    }
  },
  observe: (_method, _access, { rateLimit }) => {
    if (rateLimit !== undefined) shared.learned.push(rateLimit)
  },
}
const engine = await startEngine({ callLimiter })

beforeEach(() => {
  Object.assign(shared, { journal: [], learned: [], limitedAfter: Number.POSITIVE_INFINITY })
})

const CONFIG = {
  retry: { max_attempts: 2 },
  resources: { things: { get: { path: '/things/1' }, list: { path: '/things' } } },
}
const GET = on('things', 'get')
const TAKEN = 'acquire things.get of account-1'

test('every request takes from the budget and gives its place back, repetitions too', async () => {
  engine.upstream.script(
    { request: 'GET /things/1', answer: { status: 503 } },
    { request: 'GET /things/1', answer: { json: {} } },
  )
  expect(await engine.call(CONFIG, GET)).toMatchObject({ kind: 'ok' })
  expect(shared.journal).toEqual([TAKEN, 'release', TAKEN, 'release'])
})

test('a place is given back when no answer comes', async () => {
  const config = { ...CONFIG, base_url: 'http://127.0.0.1:1' }
  expect(await failureOf(engine.call(config, { ...GET, limits: { attemptsMax: 1 } }))).toContain('UPSTREAM_UNREACHABLE')
  expect(shared.journal).toEqual([TAKEN, 'release'])
})

test('a budget that is used up is a rate limit of our own; nothing is sent', async () => {
  shared.limitedAfter = 0
  const outcome = await engine.call(CONFIG, GET)
  expect(outcome).toMatchObject({ kind: 'rate_limited', limitedBy: 'budget', status: 429, retryAfterSeconds: 7 })
  expect(engine.upstream.requests).toEqual([])
})

test('of a list it is a step like any other, after which the same page is asked for again', async () => {
  shared.limitedAfter = 0
  engine.upstream.script({ request: 'GET /things', answer: { json: [1] } })
  const steps: string[] = []
  for await (const step of engine.pages(CONFIG, on('things', 'list'))) {
    steps.push(step.kind)
    shared.limitedAfter = 1
  }
  expect(steps).toEqual(['rate_limited', 'page'])
})

test('the limit of the upstream is observed, also from an error response', async () => {
  const headers = { 'ratelimit-remaining': '0', 'ratelimit-reset': '9' }
  engine.upstream.script(
    { request: 'GET /things/1', answer: { status: 429, headers } },
    { request: 'GET /things/1', answer: { json: {} } },
  )
  await engine.call(CONFIG, GET)
  await engine.call(CONFIG, GET)
  expect(shared.learned).toEqual([{ limit: undefined, remaining: '0', reset: '9' }])
})
