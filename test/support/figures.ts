import pg from 'pg'
import { expect } from 'vitest'

/** The table of each kind of figures, and the SQL of a row's day and state. */
const KINDS = [
  ['account', 'integrated_account', `date '1970-01-01'`, 'status'],
  [
    'trigger',
    'trigger_schedule',
    `date '1970-01-01'`,
    `case when is_paused then 'paused' when error is not null then 'suspended' else 'active' end`,
  ],
  ['run', 'sync_job_run', `(scheduled_for at time zone 'UTC')::date`, 'status'],
  ...['delivery', 'inbound_event'].map((table) => [
    table,
    table,
    `(to_timestamp(('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint / 1000.0) at time zone 'UTC')::date`,
    'state',
  ]),
]

const COUNTED = KINDS.map(
  ([kind, table, day, state]) =>
    `select environment_id, '${kind}' as kind, ${day} as day, ${state} as state, count(*) from ${table} group by 1, 3, 4`,
)

/**
 * Kinds whose table a test has truncated, which gives it another file: no operation does, and nothing counts it. Of all kinds, when
 * it has truncated `figure_delta`, because it adds rows past the triggers.
 */
const TRUNCATED = `select kind from (values ${KINDS.map(([kind, table]) => `('${kind}', '${table}'::regclass)`).join(', ')})
  listed (kind, listed_table) where exists (
    select from pg_class c left join pg_inherits i on i.inhrelid = c.oid
    where (listed_table in (c.oid, i.inhparent) or c.relname = 'figure_delta') and c.relkind = 'r' and c.relname not like '%\\_default'
      and c.relfilenode <> c.oid)`

const WRONG = `with kept as (
    select environment_id, kind, day, state, sum(count) as count from (
      select * from figure union all select * from figure_delta
    ) both_tables group by 1, 2, 3, 4 having sum(count) <> 0
  ), counted as (${COUNTED.join(' union all ')})
  select concat_ws(' ', kind, day, state, environment_id) as key, kept.count as kept, counted.count as counted
  from kept full join counted using (environment_id, kind, day, state)
  where kept.count is distinct from counted.count and environment_id in (select id from environment)
    and kind not in (${TRUNCATED})`

/** Fails when a figure of an environment of the database is not the number of rows. */
export async function expectExactFigures(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    expect((await client.query(WRONG)).rows, 'figures that are not the number of rows').toEqual([])
  } finally {
    await client.end()
  }
}
