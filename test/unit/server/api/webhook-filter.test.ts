import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { checkFilterPaths } from '../../../../src/server/api/services/webhook-filter.ts'

describe('paths of a filter into the payload', () => {
  it.each<[JsonObject, readonly string[], string]>([
    [{ 'payload.resorce': 'contacts' }, ['record:*'], 'payload.resource'],
    [{ $not: { 'payload.integration.nam': 'x' } }, [], 'payload.integration.name'],
    [{ $and: [{ $or: [{ 'payload.tenant': { $exist: true } }] }] }, ['integrated_account:*'], 'payload.tenant_id'],
  ])('%j is answered with the path that was meant', (filter, types, meant) => {
    expect(checkFilterPaths(filter, types)).toMatchObject([
      { description: `is in the payload of no event of event_types, did you mean ${meant}?` },
    ])
  })

  it.each<[string, JsonObject, readonly string[]]>([
    ['of the contract', { 'payload.resource': 'contacts' }, ['record:*']],
    ['that some event has', { 'payload.resource': 'contacts' }, []],
    ['into what a customer has', { 'payload.context.plan.seats': 5, 'payload.context["a.b"]': 1 }, []],
    ['that are no paths, which the parser of filters rejects', { payload: 1, 'payload.': 1, 'payload[': 1 }, []],
    ['of unknown events, which are rejected already', { 'payload.x': 1 }, ['none:*']],
  ])('%s pass', (_what, filter, types) => {
    expect(checkFilterPaths(filter, types)).toEqual([])
  })

  it('are nothing that another event has alone', () => {
    expect(checkFilterPaths({ 'payload.resource': 'contacts' }, ['link_token:*'])).toHaveLength(1)
  })
})
