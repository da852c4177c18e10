import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { query } from '../../src/foundation/database/index.ts'
import { pauseTrigger, resumeTrigger, updateTrigger } from '../../src/sync/schedules/index.ts'
import { caseCount } from '../support/case-count.ts'
import { clockedDatabase } from '../support/database.ts'
import { createTenant } from '../support/tenant.ts'
import { ScheduleModel } from '../unit/sync/schedules/schedule-model.ts'
import { clearTriggers, TriggerFixture } from '../unit/sync/schedules/trigger-fixture.ts'

const { database, clock: testClock } = await clockedDatabase()
const EXPRESSIONS = ['*/10 * * * * *', '*/7 * * * * *', '*/1 * * * *', '30 * * * * *', '0 0 1 1 *'] as const
const START = '2026-11-05T12:00:00Z'
const ROUNDS = caseCount(10, 50)

type Step =
  | { readonly kind: 'clock'; readonly seconds: number }
  | { readonly kind: 'fire'; readonly workers: number }
  | { readonly kind: 'crash'; readonly at: 'claimed' | 'inserted' }
  | { readonly kind: 'patch'; readonly expression: string }
  | { readonly kind: 'patch-while-firing'; readonly expression: string }
  | { readonly kind: 'pause' | 'resume' | 'pause-while-firing' | 'complete' }

const expression = fc.constantFrom(...EXPRESSIONS)
const clock = (min: number, max: number) =>
  fc.record({ kind: fc.constant('clock' as const), seconds: fc.integer({ min, max }) })
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: clock(1, 45) },
  { weight: 1, arbitrary: clock(-120, -1) },
  { weight: 1, arbitrary: clock(600, 9_000) },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('fire' as const), workers: fc.integer({ min: 1, max: 4 }) }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('crash' as const), at: fc.constantFrom('claimed', 'inserted') }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('patch' as const), expression }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('patch-while-firing' as const), expression }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('pause-while-firing' as const) }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constantFrom('pause', 'resume', 'complete') }) },
)

/** One trigger in the database and in the model, to which the same happens. */
class Pair {
  readonly #at: TriggerFixture
  readonly #id: string
  readonly #model: ScheduleModel

  private constructor(at: TriggerFixture, id: string, model: ScheduleModel) {
    this.#at = at
    this.#id = id
    this.#model = model
  }

  static async create(text: string): Promise<Pair> {
    await clearTriggers(database)
    await testClock.set(START)
    const at = new TriggerFixture(database, await createTenant(database), testClock)
    const { id } = await at.create({ cronExpression: text })
    return new Pair(at, id, new ScheduleModel(text, testClock.now().getTime()))
  }

  async perform(each: Step): Promise<void> {
    const now = testClock.now().getTime()
    switch (each.kind) {
      case 'clock':
        return await testClock.advance(each.seconds * 1_000)
      case 'fire':
        this.#model.fire(now)
        await Promise.all(Array.from({ length: each.workers }, () => this.#at.fire()))
        return
      case 'crash':
        return await this.#crash(each.at)
      case 'patch':
        this.#model.patch(each.expression, now)
        return await this.#patch(each.expression)
      case 'patch-while-firing':
        // In either order, the ticks that are due become runs of the old expression.
        this.#model.fire(now)
        this.#model.patch(each.expression, now)
        return await this.#amidFiring(() => this.#patch(each.expression))
      case 'pause':
        this.#model.pause(now)
        return await this.#steer(pauseTrigger)
      case 'pause-while-firing':
        this.#model.pause(now)
        return await this.#amidFiring(() => this.#steer(pauseTrigger))
      case 'resume':
        this.#model.resume(now)
        return await this.#steer(resumeTrigger)
      case 'complete':
        this.#model.complete(now)
        return await this.#at.completeWaiting()
    }
  }

  /** Fires what is due at last, and compares every tick and every missed stretch. */
  async expectAgreement(): Promise<void> {
    await this.perform({ kind: 'fire', workers: 1 })
    const runs = await this.#at.runsOf(this.#id)
    expect(runs.map(({ scheduledFor, reason }) => [scheduledFor.getTime(), reason])).toEqual(byTime(this.#model.ledger))
    const missed = await query<{ first: Date; last: Date; count: number }>(
      database.pool,
      'select first_at as first, last_at as last, count from missed_ticks order by last_at',
    )
    expect(missed.map(({ first, last, count }) => [last.getTime(), [first.getTime(), count]])).toEqual(
      byTime(this.#model.missed),
    )
  }

  /** A process that dies with its transaction open, before or after it has written runs. */
  async #crash(at: 'claimed' | 'inserted'): Promise<void> {
    const { queue } = this.#at
    const die = () => {
      throw new Error('killed before the commit')
    }
    const dying = {
      countWaiting: at === 'claimed' ? die : queue.countWaiting.bind(queue),
      enqueueTicks: async (...given: Parameters<typeof queue.enqueueTicks>) => {
        await queue.enqueueTicks(...given)
        die()
      },
    }
    await this.#at.fire({ queue: dying }).catch(() => undefined)
  }

  async #amidFiring(change: () => Promise<unknown>): Promise<void> {
    await Promise.all([this.#at.fire(), change(), this.#at.fire()])
    // A pass that found the row held leaves it to the next.
    await this.#at.fire()
  }

  async #patch(cronExpression: string): Promise<void> {
    await updateTrigger(this.#at.deps, this.#at.tenant.environmentId, this.#id, { cronExpression })
  }

  async #steer(steer: typeof pauseTrigger): Promise<void> {
    await database.transaction((tx) => steer(this.#at.deps, tx, this.#at.tenant.environmentId, this.#id))
  }
}

function byTime<Value>(entries: ReadonlyMap<number, Value>): readonly (readonly [number, Value])[] {
  return [...entries].sort(([one], [other]) => one - other)
}

describe('in any order of events', () => {
  it('every tick has exactly one entry with its reason, and there are no others', async () => {
    await fc.assert(
      fc.asyncProperty(expression, fc.array(step, { minLength: 5, maxLength: 25 }), async (first, steps) => {
        const pair = await Pair.create(first)
        for (const each of steps) await pair.perform(each)
        await pair.expectAgreement()
      }),
      { numRuns: ROUNDS },
    )
  })
})
