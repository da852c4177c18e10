import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { caseCount } from '../support/case-count.ts'
import { clockedDatabase } from '../support/database.ts'
import { commands } from './incremental-model.ts'
import { World } from './incremental-world.ts'

const { database, clock } = await clockedDatabase()
/** The same choices in every run of the suite; `npm run faults incremental` makes others. */
const SEED = 20_261_122

describe('once the third party answers and executors live', () => {
  it.each([
    { kind: 'webhook', numRuns: caseCount(5, 25) },
    { kind: 'daemon', numRuns: caseCount(3, 10) },
  ] as const)(
    'every change was delivered by incremental syncs ($kind)',
    { timeout: 120_000 },
    async ({ kind, numRuns }) => {
      const property = fc.asyncProperty(commands, async (days) => {
        const world = await World.create(database, clock, kind)
        for (const command of days) await world.perform(command)
        expect(await world.findLost()).toEqual([])
        expect(await world.isIncremental()).toBe(true)
      })
      await fc.assert(property, { numRuns, seed: SEED })
    },
  )
})
