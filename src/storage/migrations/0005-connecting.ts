import type { Knex } from 'knex'

/** Who is connecting an account, how often that was tried, and when it is tried again. */
export async function up(knex: Knex): Promise<void> {
  for (const statement of STATEMENTS) await knex.raw(statement)
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('drop index if exists integrated_account_connecting')
  await knex.raw(`alter table integrated_account drop column if exists connecting_due_at,
    drop column if exists connecting_lease_id, drop column if exists connecting_tries`)
  await knex.raw(
    `create index integrated_account_connecting on integrated_account (updated_at) where status = 'connecting'`,
  )
}

const STATEMENTS = [
  `alter table integrated_account
    -- From when on a worker may take it; while one has it, until when.
    add column connecting_due_at timestamptz(3) not null default now(),
    -- Of the worker that has it. Taken over or begun anew, its first holder can store nothing any more.
    add column connecting_lease_id uuid,
    add column connecting_tries integer not null default 0`,
  'drop index integrated_account_connecting',
  // A handful of rows at any moment.
  `create index integrated_account_connecting on integrated_account (connecting_due_at) where status = 'connecting'`,
]
