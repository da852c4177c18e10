import type { Knex } from 'knex'

/** Which workers there are: what a run that waits can say of those who could take it. Claims never read it. */
export async function up(knex: Knex): Promise<void> {
  // No index holds last_seen_at: it changes every few seconds, and workers are few.
  await knex.raw(`create table worker (
    -- The holder that its leases name.
    id text primary key,
    -- Empty: all.
    regions text[] not null,
    last_seen_at timestamptz(3) not null
  ) with (fillfactor = 50)`)
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('drop table if exists worker')
}
