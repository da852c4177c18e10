-- What third parties have announced without saying how it changed: one row per account and resource, until the syncs that read
-- it are started. Further hints in the meantime change nothing but the count (debounce).
create table sync_hint (
  environment_id uuid not null,
  integrated_account_id uuid not null,
  resource text not null,
  -- A while after the first hint.
  due_at timestamptz(3) not null,
  hints integer not null,
  -- The first items that asked for it: [{inbound_event_id, index}].
  items jsonb not null,
  -- Attempts to start the syncs that failed.
  attempts integer not null default 0,
  primary key (environment_id, integrated_account_id, resource)
) with (
  fillfactor = 70,
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 1000
);
create index sync_hint_due on sync_hint (due_at);
