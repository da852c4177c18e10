import type { Knex } from 'knex'

/**
 * Missed stretches by day, like runs: the ledger of a day is dropped whole.
 *
 * No foreign key to the schedule any more: making and dropping a day would have to lock every tick out. Whoever deletes a
 * trigger deletes its stretches.
 */
export async function up(knex: Knex): Promise<void> {
  for (const statement of STATEMENTS) await knex.raw(statement)
}

export async function down(knex: Knex): Promise<void> {
  for (const statement of BACK) await knex.raw(statement)
}

const COLUMNS = `environment_id uuid not null,
  trigger_id uuid not null,
  first_at timestamptz(3) not null,
  last_at timestamptz(3) not null,
  -- A lower bound when the stretch was too long to count.
  count integer not null check (count > 0),
  recorded_at timestamptz(3) not null default now(),
  primary key (trigger_id, last_at)`

const STATEMENTS = [
  'alter table missed_ticks rename to missed_ticks_unpartitioned',
  'alter index missed_ticks_pkey rename to missed_ticks_unpartitioned_pkey',
  `create table missed_ticks (${COLUMNS}) partition by range (last_at)`,
  'create table missed_ticks_default partition of missed_ticks default',
  // The first days; the partition keeper goes on from here.
  `do $$ declare first_day date := (now() at time zone 'UTC')::date; begin
    for ahead in 0..3 loop
      execute format('create table missed_ticks_%s partition of missed_ticks for values from (%L) to (%L)',
        to_char(first_day + ahead, 'YYYYMMDD'), (first_day + ahead)::text || 'Z', (first_day + ahead + 1)::text || 'Z');
    end loop;
  end $$`,
  `insert into missed_ticks (environment_id, trigger_id, first_at, last_at, count, recorded_at)
    select environment_id, trigger_id, first_at, last_at, count, recorded_at from missed_ticks_unpartitioned`,
  'drop table missed_ticks_unpartitioned',
]

const BACK = [
  'alter table missed_ticks rename to missed_ticks_partitioned',
  'alter index missed_ticks_pkey rename to missed_ticks_partitioned_pkey',
  `create table missed_ticks (${COLUMNS}, foreign key (trigger_id) references trigger_schedule (trigger_id) on delete cascade)`,
  `insert into missed_ticks (environment_id, trigger_id, first_at, last_at, count, recorded_at)
    select environment_id, trigger_id, first_at, last_at, count, recorded_at from missed_ticks_partitioned
    where trigger_id in (select trigger_id from trigger_schedule)`,
  'drop table missed_ticks_partitioned',
]
