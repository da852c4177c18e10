import { describe, expect, it } from 'vitest'
import type { Db } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { readSyncResources } from '../../../../src/sync/jobs/resource.ts'
import { findUnifiedViolations, type MappingFinder } from '../../../../src/sync/jobs/unified-nodes.ts'
import { mappingPlan } from '../../engine/unified/harness.ts'

const ACCOUNT = { environmentId: 'environment-1', integratedAccountId: undefined, integrationName: 'github' }

/** Field and rule of what is wrong with a node of the shipped mappings of GitHub. */
async function problemsOf(resource: string, node: JsonObject): Promise<string[]> {
  const mappings = {
    find: async () => ({ plan: mappingPlan('ticketing', 'github', resource, 'list') }),
  } as unknown as MappingFinder
  const resources = readSyncResources([{ resource: `ticketing/${resource}`, method: 'list', ...node }])
  const violations = await findUnifiedViolations(mappings, {} as Db, ACCOUNT as never, resources)
  return violations.map(({ field, rule }) => `${field} ${rule}`)
}

describe('a node of a unified resource', () => {
  it.each<[string, string, JsonObject, string[]]>([
    ['without a required filter', 'comments', {}, ['resources[0].query.ticket required']],
    ['with the required filter', 'comments', { query: { ticket: 'octo:hello:7' } }, []],
    ['with a template for it', 'comments', { query: { ticket: '{{resources.ticketing.tickets.id}}' } }, []],
    ['that is not strict', 'comments', { query: { strict_filters: false } }, ['resources[0].query.ticket required']],
    ['with an unknown value', 'tickets', { query: { status: 'opn' } }, ['resources[0].query.status filter']],
    ['with a known value', 'tickets', { query: { status: 'open' } }, []],
    ['with a template for a value', 'tickets', { query: { status: '{{args.status}}' } }, []],
    ['with a malformed id', 'tickets', { query: { collections: 'hello' } }, ['resources[0].query.collections filter']],
    [
      'with an unknown expansion',
      'tickets',
      { query: { expand: ['asignees'] } },
      ['resources[0].query.expand expand.not_supported'],
    ],
    ['that is not delivered', 'tickets', { persist: false }, ['resources[0].persist resources.persist']],
    ['that is delivered', 'tickets', { persist: true }, []],
  ])('%s (%s)', async (_, resource, node, expected) => {
    expect(await problemsOf(resource, node)).toEqual(expected)
  })
})
