import type { Knex } from 'knex'

/** Who executes runs outside the service. The runs they hold are leases like any others. */
export async function up(knex: Knex): Promise<void> {
  for (const statement of STATEMENTS) await knex.raw(statement)
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('drop table if exists daemon')
  await knex.raw('delete from run_checkpoint where checkpoint is null')
  await knex.raw('alter table run_checkpoint alter column checkpoint set not null')
}

const STATEMENTS = [
  // No index holds last_seen_at: it changes every few seconds, and daemons are few.
  `create table daemon (
    environment_id uuid not null references environment (id) on delete cascade,
    id uuid not null,
    label text not null,
    group_key text not null,
    -- Empty: all.
    regions text[] not null,
    version text not null,
    is_draining boolean not null default false,
    registered_at timestamptz(3) not null default now(),
    last_seen_at timestamptz(3) not null default now(),
    primary key (environment_id, id)
  ) with (fillfactor = 50)`,
  // A daemon may report how much it has done before it has anything to go on from.
  'alter table run_checkpoint alter column checkpoint drop not null',
]
