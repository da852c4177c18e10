import type { Knex } from 'knex'

/**
 * What is known about the tokens of accounts but the tokens themselves, which are secrets of the account; and the last time
 * an account was told that it may not.
 */
export async function up(knex: Knex): Promise<void> {
  for (const statement of STATEMENTS) await knex.raw(statement)
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('alter table integrated_account drop column if exists last_forbidden_error')
  await knex.raw('drop table if exists account_token')
}

const STATEMENTS = [
  `create table account_token (
    environment_id uuid not null,
    integrated_account_id uuid not null,
    -- Of the account, where it never changes.
    region text not null,
    -- Counts tokens. Whoever asks for the next one names the one it saw, so that nobody asks twice.
    version integer not null default 0,
    expires_at timestamptz(3),
    -- From when on the background asks for the next token; null: never.
    due_at timestamptz(3),
    -- Who is asking. A lease that has expired may be taken over, and its first holder can then store nothing any more.
    lease_id uuid,
    lease_expires_at timestamptz(3),
    -- In a row, since the last token.
    failures integer not null default 0,
    -- Nobody asks before this moment, and why: {kind, message} of the last refusal.
    retry_at timestamptz(3),
    refusal jsonb,
    primary key (environment_id, integrated_account_id),
    constraint account_token_account foreign key (environment_id, integrated_account_id)
      references integrated_account (environment_id, id) on delete cascade
  ) with (fillfactor = 80)`,
  `create index account_token_due on account_token (due_at) where due_at is not null`,
  // {resource, method, occurred_at} of the last 403.
  `alter table integrated_account add column last_forbidden_error jsonb`,
]
