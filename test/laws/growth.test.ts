import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { newId } from '../../src/foundation/base/index.ts'
import { execute, query } from '../../src/foundation/database/index.ts'
import { testDatabase } from '../support/database.ts'

const { database } = await testDatabase()
const ROOT = join(import.meta.dirname, '../..')
/** What exists in one PostgreSQL alone, or not behind a pooler of transactions. */
const TIES_TO_ONE_SERVER = /pg_(try_)?advisory|pg_notify|['"`]\s*(listen|notify)\s|isolation level|set session(?!_)/i
/** Written with every tick or run. */
const HOT = [
  'trigger_schedule',
  'missed_ticks',
  'sync_job_run',
  'run_queue',
  'run_lease',
  'run_checkpoint',
  'previous_run',
  'figure_delta',
]

describe('what keeps more than one PostgreSQL possible', () => {
  it('no source but the migrations asks for advisory locks, notifications, another isolation or state of a connection', () => {
    const sources = globSync('src/**/*.ts', { cwd: ROOT }).filter(
      (path) => path !== 'src/foundation/database/migrate.ts',
    )
    expect(sources.length).toBeGreaterThan(100)
    expect(sources.filter((path) => TIES_TO_ONE_SERVER.test(readFileSync(join(ROOT, path), 'utf8')))).toEqual([])
  })

  it('the index of what is due begins with the shard', async () => {
    const [index] = await query<{ columns: readonly string[] }>(
      database.pool,
      `select array_agg(a.attname::text order by a.attnum) as columns from pg_attribute a
       where a.attrelid = 'trigger_schedule_due'::regclass`,
    )
    expect(index?.columns).toEqual(['shard', 'next_fire_at', 'trigger_id', 'region'])
  })

  it('no row that a tick writes refers to another but its own trigger’s', async () => {
    const references = await query<{ from: string; to: string }>(
      database.pool,
      `select conrelid::regclass::text as "from", confrelid::regclass::text as "to" from pg_constraint
       where contype = 'f' and conrelid = any(:HOT::regclass[]) order by 1`,
      { HOT },
    )
    expect(references).toEqual([{ from: 'trigger_schedule', to: 'sync_job_cron_trigger' }])
  })

  it('no id is made by the database', async () => {
    const made = await query(
      database.pool,
      `select table_name, column_name from information_schema.columns
       where table_schema = 'public' and (is_identity = 'YES' or column_default like '%uuid%' or column_default like 'nextval%')
         and table_name not like 'patchbay_migrations%'`,
    )
    expect(made).toEqual([])
  })

  it('runs are partitioned by the time of their tick', async () => {
    const partitioned = await query<{ key: string }>(
      database.pool,
      `select pg_get_partkeydef('sync_job_run'::regclass) as key`,
    )
    expect(partitioned).toEqual([{ key: 'RANGE (scheduled_for)' }])
  })
})

describe('what keeps a tick of a burst as cheap as a single one', () => {
  it.each([
    ['run_queue', 'run_queue_of_account'],
    ['run_lease', 'run_lease_account'],
  ])('a plan made while %s is empty reads %s', async (table, index) => {
    await execute(
      database.pool,
      `insert into ${table} select (jsonb_populate_record(null::${table}, to_jsonb(v))).* from (
         select gen_random_uuid() as run_id, now() as scheduled_for, gen_random_uuid() as environment_id,
           gen_random_uuid() as integrated_account_id, 'wnam' as region, 'webhook' as queue_group, 1 as fair_rank,
           now() as available_at, 0 as attempt, 0 as attempt_base, gen_random_uuid() as lease_id, 'holder' as holder,
           now() as claimed_at, now() as expires_at
         from generate_series(1, 2000)
       ) v`,
    )
    await execute(database.pool, `delete from ${table}`)
    await execute(database.pool, `vacuum analyze ${table}`)
    const plan = await query<{ 'QUERY PLAN': string }>(
      database.pool,
      `explain select count(*) from ${table} where integrated_account_id = '${newId()}'`,
    )
    expect(plan.map((line) => line['QUERY PLAN']).join()).toContain(index)
  })
})
