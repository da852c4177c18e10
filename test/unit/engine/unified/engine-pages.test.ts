import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { createEvaluator } from '../../../../src/engine/expressions/index.ts'
import { unifiedPages } from '../../../../src/engine/unified/index.ts'
import { caseCount } from '../../../support/case-count.ts'
import { ACCOUNT, CLOCK, planOf, SHOP_PLAN, scriptedProxy } from './engine-support.ts'

const evaluator = createEvaluator()
afterAll(() => evaluator[Symbol.asyncDispose]())

const mapping = planOf({
  response: { fields: { id: 'id', name: 'label', owner: { id: 'owner' } } },
  expand: { owner: { resource: 'users', method: 'get', ids: 'owner', fields: { name: 'name' } } },
})

/** How many windows of a rate limit a page with references takes, and its owners. */
async function readPage(references: number, budget: number) {
  let left = budget
  const { proxy } = scriptedProxy(evaluator, ({ path }) => {
    if (left === 0) return { status: 429, body: {} }
    left--
    if (!path.startsWith('/people')) return { body: { id: path.split('/')[2] ?? '', name: 'x' } }
    const items = Array.from({ length: references }, (_, at) => ({ id: at, label: `n${at}`, owner: `u${at}` }))
    return { body: { items, next: null } }
  })
  const request = { expand: ['owner'], page: { limit: 100 } }
  let windows = 1
  for await (const step of unifiedPages(
    { proxy, evaluator, clock: CLOCK },
    { plan: SHOP_PLAN, access: ACCOUNT, mapping },
    request,
  )) {
    if (step.kind === 'page') return { windows, owners: step.records.map((record) => record) }
    if (step.kind !== 'rate_limited' || windows > 200) throw new Error(`${step.kind} in window ${windows}`)
    windows++
    left = budget
  }
  throw new Error('no page')
}

describe('a page with references under a rate limit', () => {
  it('takes as many windows as its requests do, whatever the budget', async () => {
    const property = fc.asyncProperty(
      fc.nat({ max: 45 }),
      fc.integer({ min: 1, max: 60 }),
      async (references, budget) => {
        const { windows, owners } = await readPage(references, budget)
        expect(windows).toBeLessThanOrEqual(Math.ceil((1 + references) / budget))
        expect(owners).toHaveLength(references)
        for (const [at, record] of owners.entries())
          expect(record).toMatchObject({ owner: { id: `u${at}`, name: 'x' } })
      },
    )
    await fc.assert(property, { numRuns: caseCount(20, 500) })
  })
})
