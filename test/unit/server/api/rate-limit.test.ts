import { describe, expect, it } from 'vitest'
import { type Clock, systemClock } from '../../../../src/foundation/base/index.ts'
import { RateLimiter } from '../../../../src/server/api/pipeline/rate-limiter.ts'
import { unary } from './support/contract.ts'
import { startHarness, WIDGET_ID } from './support/harness.ts'
import { AS_ENVIRONMENT } from './support/http.ts'
import { ALL_WIRES } from './support/protocols.ts'

describe('the limiter', () => {
  const take = (limiter: RateLimiter, count: number, nowMs: number, token = 'a') =>
    Array.from({ length: count }, () => limiter.take(token, nowMs)?.isAllowed)

  it('allows the whole limit at once and no request more', () => {
    const limiter = new RateLimiter(3, 10_000)
    expect(take(limiter, 4, 1_000)).toEqual([true, true, true, false])
  })

  it('counts each token alone', () => {
    const limiter = new RateLimiter(1, 10_000)
    expect([...take(limiter, 2, 0, 'a'), ...take(limiter, 1, 0, 'b')]).toEqual([true, false, true])
  })

  it('lets the window slide: half a window later half of the old requests count', () => {
    const limiter = new RateLimiter(4, 10_000)
    take(limiter, 4, 0)
    expect(take(limiter, 1, 9_999)).toEqual([false])
    expect(take(limiter, 3, 15_000)).toEqual([true, true, false])
  })

  it('forgets after two idle windows', () => {
    const limiter = new RateLimiter(2, 10_000)
    take(limiter, 2, 0)
    expect(take(limiter, 3, 20_000)).toEqual([true, true, false])
  })

  it('says what is left and when there is more', () => {
    const limiter = new RateLimiter(3, 10_000)
    expect(limiter.take('a', 0)).toEqual({ isAllowed: true, limit: 3, remaining: 2, resetSeconds: 10 })
    expect(limiter.take('a', 4_500)).toEqual({ isAllowed: true, limit: 3, remaining: 1, resetSeconds: 6 })
  })

  it('counts the cost of requests in units, and lets one that costs more than the limit take a whole window', () => {
    const limiter = new RateLimiter(10, 10_000)
    expect(limiter.take('a', 0, 7)).toMatchObject({ isAllowed: true, remaining: 3 })
    expect(limiter.take('a', 0, 4)).toMatchObject({ isAllowed: false, remaining: 3 })
    expect(limiter.take('a', 0, 3)).toMatchObject({ isAllowed: true, remaining: 0 })
    expect(limiter.take('b', 0, 64)).toMatchObject({ isAllowed: true, remaining: 0 })
  })

  it('counts what was used beyond the limit against what comes next', () => {
    const limiter = new RateLimiter(10, 10_000)
    limiter.charge('a', 0, 25)
    expect(limiter.isOverdrawn('a', 0)).toBe(true)
    expect(limiter.take('a', 10_000)?.isAllowed).toBe(false)
    expect(limiter.take('a', 17_000)?.isAllowed).toBe(true)
  })

  it('is off at 0', () => {
    expect(new RateLimiter(0, 10_000).take('a', 0)).toBeUndefined()
  })
})

describe.each(ALL_WIRES)('$name', (wire) => {
  it('tells the budget on every answer and rejects beyond it', async () => {
    const clock: Clock = { ...systemClock, monotonicMs: () => 1_000 }
    await using harness = await startHarness({ limits: { rateRequestsMax: 2, rateWindowMs: 10_000 }, clock })
    const client = wire.connect(harness.baseUrl)
    const good = await client.send(unary('Get'), { id: WIDGET_ID }, AS_ENVIRONMENT)
    const bad = await client.send(unary('Get'), { id: 'x' }, AS_ENVIRONMENT)
    const beyond = await client.send(unary('Get'), { id: WIDGET_ID }, AS_ENVIRONMENT)
    client.close()
    expect(budgetOf(good.headers)).toEqual(['2', '1', '10'])
    expect(budgetOf(bad.headers)).toEqual(['2', '0', '10'])
    expect(budgetOf(beyond.headers)).toEqual(['2', '0', '10'])
    expect(beyond).toMatchObject({
      error: { code: 'RESOURCE_EXHAUSTED', reason: 'RATE_LIMITED', retryAfterSeconds: 10 },
    })
    expect(beyond.headers.get('retry-after')).toBe('10')
    if (wire.hasStatus) expect(beyond).toMatchObject({ error: { httpStatus: 429 } })
  })
})

it('says nothing of budgets when the limit is off or nobody is admitted', async () => {
  await using harness = await startHarness({ limits: { rateRequestsMax: 0 } })
  const client = ALL_WIRES.at(-1)?.connect(harness.baseUrl)
  const answer = await client?.send(unary('Get'), { id: WIDGET_ID }, AS_ENVIRONMENT)
  expect(answer && budgetOf(answer.headers)).toEqual([undefined, undefined, undefined])
})

function budgetOf(headers: ReadonlyMap<string, string>): (string | undefined)[] {
  return ['ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset'].map((name) => headers.get(name))
}
