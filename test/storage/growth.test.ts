import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { rows } from '../../src/storage/database.ts'
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
]

describe('what keeps more than one PostgreSQL possible', () => {
  it('no source but the migrations asks for advisory locks, notifications, another isolation or state of a connection', () => {
    const sources = globSync('src/**/*.ts', { cwd: ROOT }).filter((path) => path !== 'src/storage/migrate.ts')
    expect(sources.length).toBeGreaterThan(100)
    expect(sources.filter((path) => TIES_TO_ONE_SERVER.test(readFileSync(join(ROOT, path), 'utf8')))).toEqual([])
  })

  it('the index of what is due begins with the shard', async () => {
    const [index] = await rows<{ columns: readonly string[] }>(
      database.direct,
      `select array_agg(a.attname::text order by a.attnum) as columns from pg_attribute a
       where a.attrelid = 'trigger_schedule_due'::regclass`,
    )
    expect(index?.columns).toEqual(['shard', 'next_fire_at', 'trigger_id'])
  })

  it('no row that a tick writes refers to another but its own trigger’s', async () => {
    const references = await rows<{ from: string; to: string }>(
      database.direct,
      `select conrelid::regclass::text as "from", confrelid::regclass::text as "to" from pg_constraint
       where contype = 'f' and conrelid = any(?::regclass[]) order by 1`,
      [HOT],
    )
    expect(references).toEqual([{ from: 'trigger_schedule', to: 'sync_job_cron_trigger' }])
  })

  it('no id is made by the database', async () => {
    const made = await rows(
      database.direct,
      `select table_name, column_name from information_schema.columns
       where table_schema = 'public' and (is_identity = 'YES' or column_default like '%uuid%' or column_default like 'nextval%')
         and table_name not like 'knex%'`,
    )
    expect(made).toEqual([])
  })

  it('runs are partitioned by the time of their tick', async () => {
    const partitioned = await rows<{ key: string }>(
      database.direct,
      `select pg_get_partkeydef('sync_job_run'::regclass) as key`,
    )
    expect(partitioned).toEqual([{ key: 'RANGE (scheduled_for)' }])
  })
})
