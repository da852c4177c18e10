-- Deliveries: one row per event and webhook, one row per attempt to send it, and the queue of what is to be sent.
--
-- Deliveries and attempts are history: partitioned by the day in the delivery's id, a UUIDv7, so that the attempts of a
-- delivery are dropped with it. Every update of a delivery that is not given up is in the page (HOT): no index has a column
-- that changes then. delivery_queue holds what waits and delivery_lease what is being sent. No foreign key leaves these
-- tables: a delivery outlives its webhook.

create table delivery (
  environment_id uuid not null,
  id uuid not null,
  event_id uuid not null,
  event_type text not null,
  webhook_id uuid not null,
  -- The account that the event concerns.
  integrated_account_id uuid,
  state text not null default 'pending' check (state in ('pending', 'delivered', 'failed', 'discarded')),
  -- Why it was created.
  trigger text not null check (trigger in ('automatic', 'replay', 'recovery', 'missing', 'test')),
  -- Attempts that were made and count.
  attempts integer not null default 0,
  -- Of the last attempt: the status of the response, and what went wrong; both null before the first one. Of a discarded
  -- delivery: why it was discarded.
  last_status smallint,
  last_error_class text,
  -- When a pending delivery is due; one that was due some seconds ago is being sent. Null when it is not pending.
  next_attempt_at timestamptz(3) default now(),
  created_at timestamptz(3) not null default now(),
  finished_at timestamptz(3),
  -- The state, of those that were given up.
  given_up text generated always as (case when state in ('failed', 'discarded') then state end) stored,
  primary key (environment_id, id),
  check ((finished_at is null) = (state = 'pending'))
) partition by range (id);
create index delivery_of_event on delivery (environment_id, event_id, id);
create index delivery_of_webhook on delivery (environment_id, webhook_id, id);
create index delivery_of_account on delivery (environment_id, integrated_account_id, id)
  where integrated_account_id is not null;
create index delivery_of_type on delivery (environment_id, event_type, id);
-- Few, once receivers work: what lists by state are for. With the state itself, in the index or its condition, every update
-- would write all indexes of the row again.
create index delivery_given_up on delivery (environment_id, given_up, id) where given_up is not null;
create table delivery_default partition of delivery default;

create table delivery_attempt (
  environment_id uuid not null,
  delivery_id uuid not null,
  -- From 1.
  n integer not null,
  -- When it was due, when it began.
  scheduled_at timestamptz(3) not null,
  started_at timestamptz(3) not null,
  -- Milliseconds. The first three are null when an open connection was used, the fourth when nothing was received.
  dns_ms real,
  connect_ms real,
  tls_ms real,
  first_byte_ms real,
  total_ms real not null,
  -- Null when nothing was received.
  status smallint,
  -- Null when it was accepted.
  error_class text,
  error_message text,
  -- The address that was connected to.
  remote_address text,
  -- As sent, with values of custom headers masked; as received. Arrays of [name, value].
  request_headers jsonb not null,
  response_headers jsonb,
  -- The first 16 KiB.
  response_body text,
  primary key (environment_id, delivery_id, n)
) partition by range (delivery_id);
create table delivery_attempt_default partition of delivery_attempt default;

select create_first_days('delivery', 'with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05)');
select create_first_days('delivery_attempt');

create table delivery_queue (
  delivery_id uuid primary key,
  environment_id uuid not null,
  webhook_id uuid not null,
  event_id uuid not null,
  trigger text not null,
  -- 'first' for new deliveries, 'retry' for later attempts and for those that are recovered: they share the slots of a worker.
  queue_group text not null,
  available_at timestamptz(3) not null,
  -- Attempts that were made and count.
  attempt integer not null,
  attempt_base integer not null default 0
) with (
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0,
  vacuum_truncate = off
);
create index delivery_queue_claim on delivery_queue (queue_group, webhook_id, available_at, delivery_id);
-- For lists of what is pending.
create index delivery_queue_of_environment on delivery_queue (environment_id, delivery_id);

create table delivery_lease (
  delivery_id uuid primary key,
  environment_id uuid not null,
  webhook_id uuid not null,
  event_id uuid not null,
  trigger text not null,
  queue_group text not null,
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
create index delivery_lease_of_webhook on delivery_lease (webhook_id, queue_group);
