import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { compilePlan, type MethodPlan } from '../../../../src/engine/definitions/index.ts'
import type { AccountAccess } from '../../../../src/engine/proxy/index.ts'
import type { Clock } from '../../../../src/foundation/base/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { waitMs } from '../../../../src/platform/limits/call-limiter.ts'
import { createCallLimiter, deleteExpiredSlots, deleteIdleWindows } from '../../../../src/platform/limits/index.ts'
import { testDatabase } from '../../../support/database.ts'

const { database } = await testDatabase()
const lost: unknown[] = []

/** Never waits: what does not fit at once is limited. */
let nowMs = 0
const impatient: Clock = {
  now: () => new Date(nowMs),
  monotonicMs: () => {
    nowMs += 10_000
    return nowMs
  },
  sleep: async () => {},
}
const budgets = createCallLimiter({
  database,
  clock: impatient,
  random: () => 0,
  onWriteError: (error) => lost.push(error),
})

function methodOf(config: JsonObject, name = 'list'): MethodPlan {
  const resources = {
    items: { list: { path: '/' }, get: { path: '/1', budget: null } },
    others: { list: { path: '/' } },
  }
  const method = compilePlan({ base_url: 'https://api.example.com', resources, ...config })
    .resources.get('items')
    ?.get(name)
  if (method === undefined) throw new Error('no method')
  return method
}

const ENVIRONMENT = randomUUID()

function account(more: Partial<AccountAccess> = {}): AccountAccess {
  const common = { isSandbox: false, context: {}, credentials: {}, environmentVariables: {} }
  return { id: randomUUID(), environmentId: ENVIRONMENT, ...common, ...more }
}

/** How many of so many calls are granted, none of them given back. */
async function granted(method: MethodPlan, accounts: readonly AccountAccess[]): Promise<number> {
  const grants = await Promise.all(accounts.map((access) => budgets.acquire(method, access)))
  return grants.filter(({ kind }) => kind === 'granted').length
}

const times = (count: number, access: AccountAccess) => Array.from({ length: count }, () => access)

describe('requests of a window', () => {
  const perDay = (limit: number, scope = 'account') => methodOf({ budget: [{ limit, per: 'day', scope }] })

  test('are never more than the limit, however many ask at once', async () => {
    expect(await granted(perDay(7), times(40, account()))).toBe(7)
  })

  test.each([
    ['account', 2, [2, 2, 2]],
    ['tenant', 2, [2, 0, 2]],
    ['integration', 2, [2, 0, 0]],
  ] as const)('count per %s', async (scope, limit, expected) => {
    const environmentIntegrationId = randomUUID()
    const accounts = ['t1', 't1', 't2'].map((tenantId) => account({ environmentIntegrationId, tenantId }))
    const found: number[] = []
    for (const access of accounts) found.push(await granted(perDay(limit, scope), times(3, access)))
    expect(found).toEqual(expected)
  })

  test('count where the rule matches, and not for a method that counts none', async () => {
    const access = account()
    const matching = { budget: [{ limit: 1, per: 'day', match: { resource: 'others' } }] }
    expect(await granted(methodOf(matching), times(3, access))).toBe(3)
    expect(await granted(methodOf({ budget: [{ limit: 1, per: 'day' }] }, 'get'), times(3, access))).toBe(3)
  })

  test('of several rules are taken together or not at all', async () => {
    const access = account()
    const both = methodOf({
      budget: [
        { limit: 5, per: 'day' },
        { limit: 2, per: 'hour' },
      ],
    })
    expect(await granted(both, times(4, access))).toBe(2)
    expect(await granted(methodOf({ budget: [{ limit: 5, per: 'day' }] }), times(9, access))).toBe(3)
  })

  test('are refused with the time until there is room', async () => {
    const method = methodOf({ budget: [{ limit: 1, per: 60 }] })
    const access = account()
    await granted(method, [access])
    const grant = await budgets.acquire(method, access)
    expect(grant).toMatchObject({ kind: 'limited', retryAfterSeconds: expect.any(Number) })
    if (grant.kind === 'limited') expect(grant.retryAfterSeconds).toBeLessThanOrEqual(120)
  })

  test('stop for everybody who shares the count when the third party asks to wait', async () => {
    const method = methodOf({
      budget: [
        { limit: 9, per: 'day' },
        { limit: 9, per: 'day', scope: 'integration' },
      ],
    })
    const environmentIntegrationId = randomUUID()
    const [asked, other] = [account({ environmentIntegrationId }), account({ environmentIntegrationId })]
    budgets.observe(method, asked, { rateLimit: undefined, retryAfterSeconds: 1_000 })
    await expect.poll(async () => (await budgets.acquire(method, asked)).kind).toBe('limited')
    expect(await granted(method, [other])).toBe(1)
  })

  test('stop until the reset when the third party says that none are left', async () => {
    const method = perDay(9)
    const access = account()
    budgets.observe(method, access, { rateLimit: { limit: '10', remaining: '3', reset: '500' } })
    budgets.observe(method, access, { rateLimit: { limit: '10', remaining: '0', reset: '500' } })
    await expect
      .poll(async () => await budgets.acquire(method, access))
      .toMatchObject({ kind: 'limited', retryAfterSeconds: expect.toSatisfy((s: number) => s > 400 && s <= 500) })
    expect(lost).toEqual([])
  })

  test('are forgotten once nothing has touched them for long', async () => {
    await granted(perDay(1), [account()])
    expect(await deleteIdleWindows(database.pool, 3_600_000, 100)).toBe(0)
    expect(await deleteIdleWindows(database.pool, -1, 1_000)).toBeGreaterThan(0)
  })
})

describe('calls in flight', () => {
  const two = methodOf({ concurrency: 2 })

  test('are never more than the definition says, and a place given back is free', async () => {
    const access = account()
    const grants = await Promise.all(times(10, access).map((each) => budgets.acquire(two, each)))
    const held = grants.filter((grant) => grant.kind === 'granted')
    expect(held.length).toBeGreaterThan(0)
    expect(held.length).toBeLessThanOrEqual(2)
    for (const grant of held) await grant.release()
    expect(await granted(two, [access])).toBe(1)
    expect(await granted(two, [access])).toBe(1)
    expect(await granted(two, [access])).toBe(0)
    expect(await granted(two, [account()])).toBe(1)
  })

  test('leave no place behind that a cleaner would take from its holder', async () => {
    await granted(two, [account()])
    expect(await deleteExpiredSlots(database.pool, 100)).toBe(0)
  })

  test('give their place back when a budget has no room', async () => {
    const method = methodOf({ concurrency: 1, budget: [{ limit: 1, per: 'day' }] })
    const access = account()
    const first = await budgets.acquire(method, access)
    if (first.kind === 'granted') await first.release()
    expect(await granted(method, [access])).toBe(0)
    expect(await granted(methodOf({ concurrency: 1 }), [access])).toBe(1)
  })
})

describe('the wait for room in a sliding window', () => {
  const window = { limit: 10, windowMs: 1_000 }
  test.each([
    ['nothing is counted', { used: 0, previous: 0, elapsed: 0.5, blockedMs: 0 }, 1],
    ['half of the window before still counts', { used: 4, previous: 10, elapsed: 0.2, blockedMs: 0 }, 300],
    ['this window alone is full', { used: 10, previous: 0, elapsed: 0.5, blockedMs: 0 }, 600],
    ['the third party asked for longer', { used: 10, previous: 0, elapsed: 0.5, blockedMs: 5_000 }, 5_000],
  ])('%s', (_what, state, ms) => {
    expect(waitMs(window, state)).toBe(ms)
  })
})
