import { expect, it } from 'vitest'
import { requiredArguments, unifiedTools } from '../../../../src/tools/servers/unified-tools.ts'
import { mappingPlan } from '../../engine/unified/harness.ts'

/** The required arguments of the tool of a shipped mapping. */
function requiredOf(integration: string, resource: string, method: string): unknown {
  const plan = mappingPlan('ticketing', integration, resource, method)
  const { description, schema } = plan.resource
  const filters = [...plan.filters.keys()].map((field) => ({ field, op: 'eq' as const }))
  const accounts = [{ id: 'a', label: integration }]
  const required = requiredArguments(plan)
  const [tool] = unifiedTools([
    { model: 'ticketing', resource, method, description, schema, filters, required, accounts },
  ])
  return tool?.input.schema.required
}

it.each([
  ['github', 'comments', 'list', ['ticket']],
  ['github', 'tickets', 'list', undefined],
  ['github', 'tickets', 'create', ['name', 'collections']],
  ['linear', 'tickets', 'create', ['name', 'teams']],
  ['github', 'tickets', 'get', ['id']],
])('the tool of %s for %s %s requires what the integration does', (integration, resource, method, expected) => {
  expect(requiredOf(integration, resource, method)).toEqual(
    expected === undefined ? undefined : expect.arrayContaining(expected),
  )
})
