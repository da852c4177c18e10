import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { caseCount } from '../../../support/case-count.ts'
import { clockedDatabase } from '../../../support/database.ts'
import { commands, resourcesOf } from './incremental-model.ts'
import { World } from './incremental-world.ts'

const { database, clock } = await clockedDatabase()
/** The same choices in every run of the suite; `npm run faults incremental` makes others. */
const SEED = 20_261_122

describe.each(['webhook', 'daemon'] as const)('a changed trigger ($0)', (kind) => {
  const own = (note: string) =>
    resourcesOf('even').map((each) => (each.resource === 'items' ? noted(each, note) : each))
  const noted = (node: JsonObject, note: string) => ({ ...node, query: { ...(node.query as JsonObject), note } })

  it('keeps its ledger, and the dates of what it has read with the same arguments and resources', async () => {
    const world = await World.create(database, clock, kind)
    expect(await world.askByTick()).toEqual(new Set(['full']))
    expect(await world.askByTick()).toEqual(new Set(['since']))
    const before = await world.listLedger()
    expect(before).toHaveLength(2)

    const args = { boxes: [1, 2] }
    await world.patch({ args: { ...args, note: 'other' } })
    expect(await world.askByTick()).toEqual(new Set(['full']))
    await world.patch({ args })
    expect(await world.askByTick()).toEqual(new Set(['since']))

    await world.patch({ resources: own('a') })
    // One resource was never read like this; all others go on.
    expect(await world.askByTick()).toEqual(new Set(['full', 'since']))
    await world.patch({ resources: own('b') })
    expect(await world.askByTick()).toEqual(new Set(['full', 'since']))
    await world.patch({ resources: own('a') })
    expect(await world.askByTick()).toEqual(new Set(['since']))

    const after = await world.listLedger()
    expect(after.slice(0, 2)).toEqual(before)
    expect(after.map(({ status }) => status)).toEqual(Array(7).fill('completed'))
  })
})

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
