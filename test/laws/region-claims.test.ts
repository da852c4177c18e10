import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { newId } from '../../src/foundation/base/index.ts'
import { execute, query } from '../../src/foundation/database/index.ts'
import { claimDue } from '../../src/foundation/queue/sql/due.ts'
import { claimItems } from '../../src/foundation/queue/sql/queue.ts'
import { claimReauthorizationWarnings } from '../../src/platform/accounts/sql/account-state.ts'
import { TOKEN_REFRESHES } from '../../src/platform/accounts/sql/account-token.ts'
import { RUN_QUEUE } from '../../src/sync/runs/sql/run-queue.ts'
import { claimDueTriggers, findNextDue } from '../../src/sync/schedules/sql/due-trigger.ts'
import { caseCount } from '../support/case-count.ts'
import { testDatabase } from '../support/database.ts'
import { claimOf, DUE_TABLES } from '../support/due-tables.ts'
import { seedEnvironment, seedInstallation } from '../support/seed-rows.ts'
import { recordStatements, StatementCosts } from '../support/statement-costs.ts'

const ROOT = join(import.meta.dirname, '../..')
const { database, url } = await testDatabase()
const tx = database.pool
const costs = new StatementCosts(url)
afterAll(() => costs[Symbol.asyncDispose]())

/** Rows of each table that wait in a region without workers. */
const ROWS = caseCount(5_000, 50_000)
const SERVED = ['eu']
const cursor = { at: new Date(0), triggerId: '00000000-0000-0000-0000-000000000000' }

/** Every claim that a region limits, by the file of its statement. */
const CLAIMS: Readonly<Record<string, readonly (() => Promise<unknown>)[]>> = {
  'platform/accounts/sql/account-state.ts': [() => claimReauthorizationWarnings(tx, { regions: SERVED, limit: 16 })],
  'foundation/queue/sql/queue.ts': [
    () =>
      claimItems(tx, RUN_QUEUE, {
        group: 'webhook',
        regions: SERVED,
        leaseIds: [newId()],
        heldMax: null,
        holder: 'worker',
        leaseMs: 60_000,
      }),
  ],
  'sync/schedules/sql/due-trigger.ts': [
    () => findNextDue(tx, new Map([[0, cursor]]), SERVED),
    () => claimDueTriggers(tx, 0, cursor, new Date(Date.now() + 60_000), SERVED, 100),
  ],
  ...Object.fromEntries(
    Object.entries(DUE_TABLES).map(([path, table]) => [path, [() => claimOf(tx, table, { regions: SERVED })]]),
  ),
}
/** Ordered across regions, whose index says the region: so many entries are on a page. */
const ENTRIES_PER_PAGE = 50
const ORDERED_ACROSS_REGIONS = ['foundation/queue/sql/queue.ts', 'sync/schedules/sql/due-trigger.ts']

beforeAll(async () => {
  await costs.connect()
  const environmentId = await seedEnvironment(database)
  const installation = await seedInstallation(database, environmentId, 'x', {})
  const ids = { environmentId, installation }
  for (const status of ['connecting', 'active'])
    await execute(
      tx,
      `insert into integrated_account (environment_id, id, environment_integration_id, tenant_id, authentication_method,
         context, status, is_sandbox, region, object_store_context_fields, connecting_due_at, reauthorization_warning_at)
       select :environmentId, gen_random_uuid(), :installation, 'tenant', 'oauth2', '{}', :status, false, 'wnam', '{}',
         now() - interval '1 hour', now() - interval '1 hour' from generate_series(1, ${ROWS / 2}) n`,
      { ...ids, status },
    )
  await execute(
    tx,
    `insert into account_token (environment_id, integrated_account_id, region, version, expires_at, due_at)
     select environment_id, id, region, 1, now(), now() - interval '1 s' from integrated_account`,
  )
  await execute(
    tx,
    `insert into webhook_subscription (environment_id, integrated_account_id, event, region, status, due_at)
     select environment_id, id, '', region, 'creating', now() - interval '1 s' from integrated_account`,
  )
  await execute(
    tx,
    `insert into account_removal (id, region, sealed, due_at)
     select gen_random_uuid(), 'wnam', '', now() - interval '1 s' from generate_series(1, ${ROWS}) n`,
  )
  await execute(
    tx,
    `insert into run_queue (run_id, scheduled_for, environment_id, integrated_account_id, region, queue_group, fair_rank,
       available_at, attempt)
     select gen_random_uuid(), now(), :environmentId, gen_random_uuid(), 'wnam', 'webhook', n, now() - interval '1 s', 0
     from generate_series(1, ${ROWS}) n`,
    { environmentId },
  )
  await database.transaction(async (each) => {
    await execute(each, 'truncate figure_delta')
    await execute(each, 'set local session_replication_role = replica')
    await execute(
      each,
      `insert into trigger_schedule (trigger_id, environment_id, shard, region, cron_expression, next_fire_at)
       select gen_random_uuid(), :environmentId, 0, 'wnam', '@daily', now() - n * interval '1 s'
       from generate_series(1, ${ROWS}) n`,
      { environmentId },
    )
  })
  await execute(tx, 'analyze')
})

it.each(Object.entries(CLAIMS))(
  'a claim of %s reads nothing of a region that it does not serve',
  async (path, claims) => {
    const statements = await recordStatements(async () => {
      for (const claim of claims)
        expect([undefined, [], [expect.objectContaining({ nextFireAt: null })]]).toContainEqual(await claim())
    })
    expect(statements).toHaveLength(claims.length)
    const pagesMax = ORDERED_ACROSS_REGIONS.includes(path) ? ROWS / ENTRIES_PER_PAGE : 50
    for (const statement of statements)
      for (const { pages, rowsRead, text } of await costs.measure(statement)) {
        expect(pages, text).toBeLessThan(pagesMax)
        expect(rowsRead, text).toBeLessThan(50)
      }
  },
)

it('every statement that regions limit is among them', () => {
  const files = globSync('src/**/sql/*.ts', { cwd: ROOT, exclude: ['src/foundation/queue/sql/due.ts'] }).filter(
    (path) =>
      /any\(\(?(?:select )?:regions::text\[\]|dueInRegionsSql\(|: DueTable</.test(
        readFileSync(join(ROOT, path), 'utf8'),
      ),
  )
  expect(files.map((path) => path.slice('src/'.length)).toSorted()).toEqual(Object.keys(CLAIMS).toSorted())
})

it('a worker of all regions takes the longest due first, in any region, and as many as it asks for', async () => {
  await execute(
    tx,
    `update account_token set region = (array['wnam', 'enam', 'apac', 'eu'])[1 + abs(hashtext(integrated_account_id::text)) % 4],
       due_at = now() - abs(hashtext(integrated_account_id::text) % 10000) * interval '1 s'`,
  )
  const [first] = await query<{ id: string }>(
    tx,
    'select integrated_account_id as id from account_token order by due_at limit 1',
  )
  const [taken] = await claimDue(tx, TOKEN_REFRESHES, { leaseId: newId(), leaseMs: 60_000, limit: 1 })
  expect(taken?.id).toBe(first?.id)
  const claims = Array.from({ length: 8 }, () =>
    claimDue(tx, TOKEN_REFRESHES, { leaseId: newId(), leaseMs: 60_000, limit: 16 }),
  )
  const all = (await Promise.all(claims)).flat().map(({ id }) => id)
  expect(new Set(all).size).toBe(8 * 16)
})
