import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { execute, query } from '../../../../src/foundation/database/index.ts'
import { selectToolAccounts, TOOL_ACCOUNTS_MAX } from '../../../../src/tools/servers/sql/tool-account.ts'
import { caseCount } from '../../../support/case-count.ts'
import { testDatabase } from '../../../support/database.ts'
import { seedEnvironment, seedInstallation } from '../../../support/seed-rows.ts'

const { database } = await testDatabase()
const tx = database.pool
const MAPPINGS = 200

async function addAccounts(environmentId: string, installation: string, count: number): Promise<void> {
  await execute(
    tx,
    `insert into integrated_account (environment_id, id, environment_integration_id, tenant_id, authentication_method, context,
       status, is_sandbox, region, object_store_context_fields)
     select :environmentId, uuidv7(), :installation, 'acme', 'api_key', '{}', 'active', false, 'wnam', '{}'
     from generate_series(1, :count::int)`,
    { environmentId, installation, count },
  )
}

async function addMappings(environmentId: string, name: string, count: number): Promise<void> {
  await execute(
    tx,
    `insert into unified_mapping (id, team_id, environment_id, model, resource, integration_name, method, config)
     select uuidv7(), team_id, :environmentId, 'crm', 'r' || n, :name, 'list', '{}'
     from environment, generate_series(1, :count::int) n where id = :environmentId`,
    { environmentId, name, count },
  )
}

describe('the accounts of a tool server', () => {
  it('do not depend on accounts of integrations that it does not name', async () => {
    const counts = fc.record({ before: fc.nat({ max: 70 }), own: fc.nat({ max: 60 }), after: fc.nat({ max: 70 }) })
    const property = fc.asyncProperty(counts, async ({ before, own, after }) => {
      const environmentId = await seedEnvironment(database)
      const wanted = await seedInstallation(database, environmentId, 'wanted', {})
      const others = await seedInstallation(database, environmentId, 'others', {})
      await addAccounts(environmentId, others, before)
      await addAccounts(environmentId, wanted, own)
      await addAccounts(environmentId, others, after)
      const scope = { environmentId, integratedAccountId: null, tenantId: 'acme' }
      const [found = [], all = []] = await selectToolAccounts(tx, [
        { ...scope, integrations: ['wanted'] },
        { ...scope, integrations: [] },
      ])
      expect(found).toHaveLength(Math.min(own, TOOL_ACCOUNTS_MAX + 1))
      expect(new Set(found.map(({ integrationName }) => integrationName))).toEqual(new Set(own > 0 ? ['wanted'] : []))
      expect(all).toHaveLength(Math.min(before + own + after, TOOL_ACCOUNTS_MAX + 1))
    })
    await fc.assert(property, { numRuns: caseCount(5, 100) })
  })

  it('are read with each mapping once, however many accounts there are', async () => {
    const environmentId = await seedEnvironment(database)
    const installation = await seedInstallation(database, environmentId, 'costly', {})
    await addMappings(environmentId, 'costly', MAPPINGS)
    const scope = { environmentId, integratedAccountId: null, tenantId: 'acme', integrations: [] }
    const readOf = async () =>
      await database.transaction(async (each) => {
        await selectToolAccounts(each, [scope])
        const sql = `select pg_stat_get_xact_tuples_returned('unified_mapping'::regclass)
          + pg_stat_get_xact_tuples_fetched('unified_mapping'::regclass) as rows`
        return (await query<{ readonly rows: number }>(each, sql))[0]?.rows ?? 0
      })
    await addAccounts(environmentId, installation, 45)
    await execute(tx, 'analyze')
    // For each account it would be 45 times as many.
    expect(await readOf()).toBeLessThanOrEqual(3 * MAPPINGS)
  })
})
