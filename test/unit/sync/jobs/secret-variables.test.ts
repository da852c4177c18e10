import { afterAll, expect, it } from 'vitest'
import { publicVariables } from '../../../../src/engine/definitions/index.ts'
import { createEvaluator } from '../../../../src/engine/expressions/index.ts'
import { unifiedPages } from '../../../../src/engine/unified/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { compileSyncPlan, listingRequest } from '../../../../src/sync/jobs/plan.ts'
import { readSyncResources } from '../../../../src/sync/jobs/resource.ts'
import { unifiedRequestOf } from '../../../../src/sync/jobs/unified-nodes.ts'
import { ACCOUNT, planOf, SHOP_PLAN, scriptedProxy } from '../../engine/unified/engine-support.ts'

const evaluator = createEvaluator()
afterAll(() => evaluator[Symbol.asyncDispose]())

const VARIABLES: JsonObject = {
  WORKSPACE: 'w-1',
  CLIENT_SECRET: 'masked-a',
  keys: { api_key: 'masked-b', region: 'eu' },
}

it('a job template reads the variables that the API shows, and no record holds one that it masks', async () => {
  const access = { ...ACCOUNT, environmentVariables: publicVariables(VARIABLES) }
  const q = '{{env.WORKSPACE}} {{env.CLIENT_SECRET?:-}} {{environment_variables.keys.api_key?:-}} {{env.keys.region}}'
  const [node] = compileSyncPlan(
    readSyncResources([{ resource: 'shop/customers', method: 'list', query: { remote_query: { q } } }] as never),
  ).nodes
  const traversal = { account: { ...access, credentials: {} }, previousRunDates: [null] }
  const request = listingRequest(traversal as never, node as never, { args: {}, resources: {} })
  const { proxy, seen } = scriptedProxy(evaluator, () => ({ body: { items: [{ id: 1 }], next: null } }))
  const mapping = planOf({ response: { fields: { id: 'id', name: '$query.q' } } })
  const asked = unifiedRequestOf(request, mapping, new AbortController().signal)
  const steps: unknown[] = []
  for await (const step of unifiedPages(
    { proxy, evaluator, clock: { now: () => new Date(0) } } as never,
    { plan: SHOP_PLAN, access, mapping } as never,
    asked,
    null,
  ))
    steps.push(step)
  const text = JSON.stringify([steps, seen])
  expect(text).toContain('w-1 - - eu')
  expect(text).not.toMatch(/masked-[ab]/)
})
