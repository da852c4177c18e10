import { Cron } from 'croner'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { updateTrigger } from '../../src/schedule/index.ts'
import { createTenant } from '../queue/fixtures.ts'
import { testDatabase } from '../support/database.ts'
import { clearTriggers, TriggerBench } from './bench-of-triggers.ts'

const { database } = await testDatabase()
const EXPRESSIONS = ['*/10 * * * * *', '*/7 * * * * *', '*/1 * * * *', '30 * * * * *', '0 0 1 1 *'] as const
const START = '2026-11-05T12:00:00Z'

type Step =
  | { readonly kind: 'wait'; readonly seconds: number }
  | { readonly kind: 'fire'; readonly workers: number }
  | { readonly kind: 'crash' }
  | { readonly kind: 'patch'; readonly expression: string }
  | { readonly kind: 'patch-while-firing'; readonly expression: string }
  | { readonly kind: 'clock-back'; readonly seconds: number }

const expression = fc.constantFrom(...EXPRESSIONS)
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('wait' as const), seconds: fc.integer({ min: 1, max: 45 }) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('fire' as const), workers: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('crash' as const) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('patch' as const), expression }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('patch-while-firing' as const), expression }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('clock-back' as const), seconds: fc.integer({ min: 1, max: 30 }) }),
  },
)

/** What a schedule should have done: the ticks that have become runs, and the one that comes next. */
class Model {
  readonly ticks = new Set<number>()
  #oracle: Cron
  #expression: string
  #next: number

  constructor(text: string, nowMs: number) {
    this.#expression = text
    this.#oracle = oracleOf(text)
    this.#next = this.#after(nowMs)
  }

  fire(nowMs: number): void {
    while (this.#next <= nowMs) {
      this.ticks.add(this.#next)
      this.#next = this.#after(this.#next)
    }
  }

  patch(text: string, nowMs: number): void {
    if (text === this.#expression) return
    this.fire(nowMs)
    this.#expression = text
    this.#oracle = oracleOf(text)
    this.#next = this.#after(nowMs)
  }

  #after(ms: number): number {
    return this.#oracle.nextRun(new Date(ms))?.getTime() ?? Number.POSITIVE_INFINITY
  }
}

function oracleOf(text: string): Cron {
  return new Cron(text, { utcOffset: 0, mode: '5-or-6-parts' })
}

async function perform(at: TriggerBench, id: string, model: Model, each: Step): Promise<void> {
  const patch = (text: string) => updateTrigger(at.deps, at.tenant.environmentId, id, { cronExpression: text })
  const nowMs = at.clock.now().getTime()
  switch (each.kind) {
    case 'wait':
      return at.clock.advance(each.seconds * 1000)
    case 'clock-back':
      return at.clock.advance(-each.seconds * 1000)
    case 'fire':
      model.fire(nowMs)
      await Promise.all(Array.from({ length: each.workers }, () => at.fire()))
      return
    case 'crash':
      await at.fire({ observer: CRASHING }).catch(() => undefined)
      return
    case 'patch':
      model.patch(each.expression, nowMs)
      await patch(each.expression)
      return
    case 'patch-while-firing':
      // Whoever is first, the ticks that are due become runs of the old expression.
      model.fire(nowMs)
      model.patch(each.expression, nowMs)
      await Promise.all([at.fire(), patch(each.expression), at.fire()])
      // A pass that found the row held leaves it to the next.
      await at.fire()
      return
  }
}

const CRASHING = {
  runsChanged: async () => {
    throw new Error('killed before the commit')
  },
  triggersFailed: async () => {},
}

describe('whatever happens in whatever order', () => {
  it('every tick has exactly one entry, and there are no others', { timeout: 120_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(expression, fc.array(step, { minLength: 5, maxLength: 25 }), async (first, steps) => {
        await clearTriggers(database)
        const at = new TriggerBench(database, await createTenant(database), START)
        const { id } = await at.create({ cronExpression: first })
        const model = new Model(first, at.clock.now().getTime())
        for (const each of steps) await perform(at, id, model, each)
        model.fire(at.clock.now().getTime())
        await at.fire()
        const stored = (await at.runsOf(id)).map(({ scheduledFor }) => scheduledFor.getTime())
        expect(stored).toEqual([...model.ticks].sort((a, b) => a - b))
      }),
      { numRuns: 40 },
    )
  })
})
