-- The audit log: one row for each call that changed something, inserted in the transaction of its change, never updated.
-- Partitioned by the day in the id, a UUIDv7 of the moment at which the call was made. No foreign key leaves the table: the row
-- outlives whatever it is about, its team and environment included.
create table audit_entry (
  -- The environment in which the call acted, else the team.
  owner_id uuid not null,
  id uuid not null,
  team_id uuid not null,
  -- By the clock of the database.
  occurred_at timestamptz(3) not null,
  actor_kind text not null,
  -- Of the token; null for a command.
  actor_id uuid,
  -- The operator of the installation has acted inside the team.
  is_impersonation boolean not null,
  -- Of the RPC: service and method.
  method text not null,
  target_type text not null,
  target_id text,
  request_id text not null,
  -- By path, {"after": …}; {} where the value is not recorded.
  changes jsonb not null,
  client_address text,
  user_agent text,
  primary key (owner_id, id)
) partition by range (id);
create index audit_entry_of_target on audit_entry (owner_id, target_id, id) where target_id is not null;
create index audit_entry_of_actor on audit_entry (owner_id, actor_id, id) where actor_id is not null;
create index audit_entry_of_method on audit_entry (owner_id, method, id);
-- Entries of days without a partition of their own.
create table audit_entry_default partition of audit_entry default;
select create_first_days('audit_entry');
