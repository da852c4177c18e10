-- Tool servers: what agents may do with connected accounts, and the record of their calls.

create table tool_server (
  environment_id uuid not null references environment (id) on delete cascade,
  id uuid not null,
  name text not null,
  -- Empty: a text about how to use the tools.
  instructions text not null,
  -- Either one account, with which the server is deleted, or the accounts of a tenant.
  integrated_account_id uuid,
  tenant_id text,
  -- Names of integrations; empty: all.
  integrations text[] not null,
  filter jsonb not null,
  is_read_only boolean not null,
  mode text not null check (mode in ('auto', 'direct', 'search')),
  allow_search_writes boolean not null,
  expires_at timestamptz(3),
  requests_per_minute integer not null check (requests_per_minute > 0),
  writes_per_day integer not null check (writes_per_day > 0),
  max_result_bytes integer not null check (max_result_bytes > 0),
  is_enabled boolean not null,
  -- SHA-256 of the token.
  token_hash bytea not null,
  token_hint text not null,
  last_used_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  version integer not null default 1,
  primary key (environment_id, id),
  check ((integrated_account_id is null) <> (tenant_id is null)),
  constraint tool_server_account foreign key (environment_id, integrated_account_id)
    references integrated_account (environment_id, id) on delete cascade
);
-- Clients name a tool server without its environment.
create unique index tool_server_id on tool_server (id);
create index tool_server_of_account on tool_server (environment_id, integrated_account_id)
  where integrated_account_id is not null;
create index tool_server_of_tenant on tool_server (environment_id, tenant_id) where tenant_id is not null;

-- Inserted and dropped with their day, never updated. Partitioned by the day in the id, a UUIDv7. No foreign key leaves the
-- table: the record of a call outlives its tool server.
create table tool_server_call (
  environment_id uuid not null,
  id uuid not null,
  tool_server_id uuid not null,
  -- As the client named it, cut.
  tool text not null,
  -- Null for a call that did not get that far.
  integrated_account_id uuid,
  token_hint text not null,
  -- Empty: the call succeeded.
  error_type text not null,
  duration_ms integer not null,
  result_bytes integer not null,
  is_dry_run boolean not null,
  created_at timestamptz(3) not null default now(),
  primary key (environment_id, id)
) partition by range (id);
create index tool_server_call_of_server on tool_server_call (environment_id, tool_server_id, id);
-- Calls of days without a partition of their own.
create table tool_server_call_default partition of tool_server_call default;
select create_first_days('tool_server_call');
