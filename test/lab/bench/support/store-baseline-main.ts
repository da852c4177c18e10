/**
 * What one would write by hand to bring a list into PostgreSQL: fetch a page, upsert it, fetch the next. It remembers
 * nothing and begins anew when it ends.
 *
 * `store-baseline-main.ts <upstream> <database url> <page size>`, forked: after every message it does it once and sends the
 * seconds that took.
 */

import pg from 'pg'

const [upstream, connectionString, limit] = process.argv.slice(2)
const client = new pg.Client({ connectionString })
await client.connect()
await client.query('create schema if not exists floor')
await client.query(`create table if not exists floor.contacts (
  id text primary key, record jsonb not null, first_seen_at timestamptz not null default now(),
  last_seen_at timestamptz not null default now())`)

const UPSERT = `insert into floor.contacts (id, record) select r->>'id', r from jsonb_array_elements($1::jsonb) r
  on conflict (id) do update set record = excluded.record, last_seen_at = excluded.last_seen_at`

async function bringAll(): Promise<number> {
  await client.query('truncate floor.contacts')
  const from = performance.now()
  for (let page = 1; ; page++) {
    const answer = await fetch(`${upstream}/contacts?page=${page}&limit=${limit}`)
    const { data } = (await answer.json()) as { readonly data: readonly unknown[] }
    if (data.length === 0) return (performance.now() - from) / 1_000
    await client.query({ name: 'upsert', text: UPSERT, values: [JSON.stringify(data)] })
  }
}

process.on('message', async () => process.send?.(await bringAll()))
process.send?.('ready')
