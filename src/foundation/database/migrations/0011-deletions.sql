-- An installation that is deleted with more accounts than a call deletes: nothing finds it any more, and a task deletes the
-- accounts in batches. A step of the task shows it to its own transaction.

alter table environment_integration
  add column deleted_at timestamptz(3),
  add column is_hidden boolean not null default false,
  add constraint environment_integration_hidden check (not is_hidden or deleted_at is not null);
-- The integration may be installed again meanwhile.
drop index environment_integration_pair;
create unique index environment_integration_pair on environment_integration (environment_id, integration_id)
  where deleted_at is null;
