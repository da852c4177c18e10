import { describe, expect, it } from 'vitest'
import { checkTicks } from '../../../lab/faults/support/tick-checker.ts'

const at = (seconds: number) => new Date(Date.UTC(2026, 10, 5, 12, 0, seconds))
const TRIGGERS = [{ id: 'a', expression: '*/10 * * * * *', from: at(0) }]
const RUNS = [10, 20, 30].map((seconds) => ['a', at(seconds), 5] as const)

describe('the judge of fault scripts', () => {
  it('finds nothing where every tick has its run', () => {
    expect(checkTicks(TRIGGERS, RUNS, at(35))).toMatchObject({ owed: 3, missing: 0, duplicate: 0, spurious: 0 })
  })

  it.each([
    ['a tick without a run', RUNS.slice(1), { missing: 1, duplicate: 0, spurious: 0 }],
    ['a tick with two runs', [...RUNS, ['a', at(20), 5]], { missing: 0, duplicate: 1, spurious: 0 }],
    ['a run at a moment that is no tick', [...RUNS, ['a', at(21), 5]], { missing: 0, duplicate: 0, spurious: 1 }],
    ['a run of an unknown trigger', [...RUNS, ['b', at(20), 5]], { missing: 0, duplicate: 0, spurious: 1 }],
    ['a run before the trigger owed any', [...RUNS, ['a', at(0), 5]], { missing: 0, duplicate: 0, spurious: 1 }],
  ] as const)('finds %s', (_, runs, verdict) => {
    expect(checkTicks(TRIGGERS, runs, at(35))).toMatchObject(verdict)
  })

  it('checks no further than the given moment', () => {
    expect(checkTicks(TRIGGERS, RUNS, at(15))).toMatchObject({ owed: 1, missing: 0, spurious: 0 })
  })
})
