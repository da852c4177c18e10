-- Inbound webhooks: what third parties sent, what of it waits to be processed, and how duplicates are recognised.
--
-- A request is one insert before its answer: the event, its content, its dedupe key and its place in the queue in one
-- statement. Events and contents are partitioned by the day in the id, a UUIDv7, and dropped by days; contents have fewer
-- days than events, and are all that an expunge has to delete. No foreign key leaves these tables: an insert would lock the
-- row of the account, and history outlives what it is about.

-- An address names an account or an installation by its id alone.
create unique index integrated_account_id on integrated_account (id);
create unique index environment_integration_id on environment_integration (id);

create table inbound_event (
  environment_id uuid not null,
  id uuid not null,
  source_kind text not null check (source_kind in ('integrated_account', 'environment_integration')),
  -- The id in the address.
  source_id uuid not null,
  environment_integration_id uuid not null,
  -- Null: the address is one of an installation.
  integrated_account_id uuid,
  method text not null,
  path text not null,
  -- As received, without the question mark.
  query text not null,
  remote_address text not null,
  -- Of the body as received.
  body_bytes integer not null,
  state text not null check (state in ('handshake', 'received', 'processed', 'failed', 'rejected', 'unrouted')),
  -- none: the definition does not authenticate deliveries.
  signature text not null check (signature in ('none', 'valid', 'invalid')),
  -- Null: handshakes and rejected deliveries claim none.
  dedupe_key text,
  -- Further deliveries with the same key.
  duplicates integer not null default 0,
  received_at timestamptz(3) not null default now(),
  -- When the third party says that it happened.
  provider_time timestamptz(3),
  processed_at timestamptz(3),
  -- {step, reason, message}
  error jsonb,
  -- What each step did: {transform, handshake, signature, context, mapping, routing}.
  trace jsonb not null default '{}',
  primary key (environment_id, id)
) partition by range (id);
create index inbound_event_of_source on inbound_event (environment_id, source_id, id);
-- Few, once definitions work: what lists by state are for.
create index inbound_event_of_state on inbound_event (environment_id, state, id) where state <> 'processed';
create table inbound_event_default partition of inbound_event default with (fillfactor = 80);

create table inbound_content (
  environment_id uuid not null,
  id uuid not null,
  -- [[name, value]] in their order, duplicates included; names as received. Secrets of rejected deliveries are masked.
  headers jsonb not null,
  -- As received; the first 4 KiB of a rejected delivery.
  body bytea not null,
  -- The payload, where payload_transform made one; null: it is parsed from the body.
  payload jsonb,
  primary key (environment_id, id)
) partition by range (id);
create table inbound_content_default partition of inbound_content default;
select create_first_days('inbound_event', 'with (fillfactor = 80)');
select create_first_days('inbound_content');

-- One event per source and key until it expires (unique index).
create table inbound_dedupe (
  source_id uuid not null,
  key text not null,
  environment_id uuid not null,
  event_id uuid not null,
  expires_at timestamptz(3) not null,
  primary key (source_id, key)
) with (
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 1000
);
create index inbound_dedupe_expiry on inbound_dedupe (expires_at);

-- Rejected deliveries and handshakes, which are kept for a day and in bounded number per source.
create table inbound_short_lived (
  source_id uuid not null,
  event_id uuid not null,
  environment_id uuid not null,
  primary key (source_id, event_id)
);
create index inbound_short_lived_oldest on inbound_short_lived (event_id);

-- What one item of an event led to.
create table inbound_item (
  environment_id uuid not null,
  inbound_event_id uuid not null,
  -- Counts the items of an event, also over replays.
  index integer not null,
  state text not null check (state in ('routed', 'unrouted', 'hint', 'ignored')),
  -- The event was processed again when it led to this.
  is_replay boolean not null,
  integrated_account_id uuid,
  -- The value that was to be found in the accounts' context.
  lookup_value text,
  -- The outbox event.
  event_id uuid,
  resource text,
  record_id text,
  detail text,
  primary key (environment_id, inbound_event_id, index)
) partition by range (inbound_event_id);
create table inbound_item_default partition of inbound_item default;
create index inbound_item_unrouted on inbound_item (environment_id, lookup_value, inbound_event_id) where state = 'unrouted';
create index inbound_item_of_account on inbound_item (environment_id, integrated_account_id, inbound_event_id)
  where integrated_account_id is not null;
select create_first_days('inbound_item');

create table inbound_queue (
  event_id uuid primary key,
  environment_id uuid not null,
  source_id uuid not null,
  source_kind text not null,
  -- 'received' for what was just received, 'replay' for what is processed again: the second has at least a quarter of each claim.
  queue_group text not null,
  available_at timestamptz(3) not null,
  -- Attempts that were made and count.
  attempt integer not null,
  attempt_base integer not null default 0,
  -- The event was asked to be processed again.
  is_replay boolean not null default false
) with (
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0,
  vacuum_truncate = off
);
create index inbound_queue_claim on inbound_queue (queue_group, source_id, available_at, event_id);

create table inbound_lease (
  event_id uuid primary key,
  environment_id uuid not null,
  source_id uuid not null,
  source_kind text not null,
  queue_group text not null,
  is_replay boolean not null default false,
  lease_id uuid not null,
  holder text not null,
  attempt integer not null,
  attempt_base integer not null default 0,
  claimed_at timestamptz(3) not null,
  expires_at timestamptz(3) not null,
  stop_requested_at timestamptz(3)
) with (
  fillfactor = 50,
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0,
  vacuum_truncate = off
);
-- Several events of one source are processed at once.
create index inbound_lease_of_source on inbound_lease (source_id, queue_group);

-- The last request that set a context key of an account, so that one that is processed late does not overwrite it.
create table webhook_context_key (
  environment_id uuid not null,
  integrated_account_id uuid not null,
  key text not null,
  -- A UUIDv7, made when the request was received.
  inbound_event_id uuid not null,
  primary key (environment_id, integrated_account_id, key),
  foreign key (environment_id, integrated_account_id) references integrated_account (environment_id, id) on delete cascade
) with (fillfactor = 70);
