-- The request log: one row for each request to a third party. Inserted in batches and dropped with its day, never updated.
-- Partitioned by the day in the id, a UUIDv7 of the moment at which the request ended. No foreign key leaves the table: the
-- row outlives its account.
create table call_log_entry (
  environment_id uuid not null,
  id uuid not null,
  -- Null while an account is being connected.
  integrated_account_id uuid,
  environment_integration_id uuid,
  -- Of the definition; empty where no method describes the request.
  resource text not null,
  method text not null,
  http_method text not null,
  -- Without authorization, secrets masked.
  url text not null,
  -- Null when nothing was received.
  status smallint,
  class text not null,
  -- Null of a success.
  error_message text,
  started_at timestamptz(3) not null,
  -- Milliseconds. The first three are null when an open connection was used, the fourth when nothing was received.
  dns_ms real,
  connect_ms real,
  tls_ms real,
  first_byte_ms real,
  total_ms real not null,
  -- From 1, within one call.
  attempt smallint not null,
  bytes_sent bigint not null,
  bytes_received bigint not null,
  upstream_request_id text,
  -- What it was sent for, and the id of that: of a request, run or tool call.
  cause text not null,
  cause_id text,
  -- Secrets masked, bodies cut; null unless it failed or was sampled. Headers are arrays of [name, value].
  request_headers jsonb,
  request_body text,
  response_headers jsonb,
  response_body text,
  primary key (environment_id, id)
) partition by range (id);
create index call_log_entry_of_account on call_log_entry (environment_id, integrated_account_id, id)
  where integrated_account_id is not null;
create index call_log_entry_of_installation on call_log_entry (environment_id, environment_integration_id, id)
  where environment_integration_id is not null;
create index call_log_entry_of_resource on call_log_entry (environment_id, resource, id) where resource <> '';
create index call_log_entry_of_cause on call_log_entry (environment_id, cause_id, id) where cause_id is not null;
-- Most requests succeed, and are found by the primary key.
create index call_log_entry_failed on call_log_entry (environment_id, class, id) where class <> 'success';
-- Entries of days without a partition of their own.
create table call_log_entry_default partition of call_log_entry default;
select create_first_days('call_log_entry');
