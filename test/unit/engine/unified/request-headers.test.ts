import { afterAll, expect, test } from 'vitest'
import { createEvaluator } from '../../../../src/engine/expressions/index.ts'
import { buildCall } from '../../../../src/engine/unified/build-call.ts'
import type { UnifiedRequest } from '../../../../src/engine/unified/index.ts'
import { prepareRequest } from '../../../../src/engine/unified/index.ts'
import { CLOCK } from './engine-support.ts'
import { accountOf, definitionPlan, mappingPlan } from './harness.ts'

const evaluator = createEvaluator()
afterAll(() => evaluator[Symbol.asyncDispose]())

async function headersOf(
  place: readonly [model: string, integration: string, resource: string, method: string],
  request: UnifiedRequest,
) {
  const [, integration] = place
  const target = {
    mapping: mappingPlan(...place),
    plan: definitionPlan(integration),
    access: accountOf(integration),
  }
  return (await buildCall({ evaluator }, target, request, prepareRequest({ clock: CLOCK }, target, request))).headers
}

// https://learn.microsoft.com/en-us/graph/aad-advanced-queries
test('a sorted list of Microsoft Graph is an advanced query, without which an order and a filter exclude each other', async () => {
  const users = ['directory', 'microsoft-graph', 'users', 'list'] as const
  const filters = [{ field: 'status', op: 'eq' as const, value: 'active' }]
  expect(await headersOf(users, { filters, sort: { field: 'name', direction: 'asc' } })).toEqual({
    ConsistencyLevel: 'eventual',
  })
  expect(await headersOf(users, { filters })).toEqual({})
})
