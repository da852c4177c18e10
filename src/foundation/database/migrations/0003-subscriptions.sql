-- The subscriptions of accounts at the third party (`webhook.subscription` of a definition): one row each, also where its
-- condition does not hold (`none`). Rows are written by the worker that holds the lease, and by the change that makes one due.
create table webhook_subscription (
  environment_id uuid not null,
  integrated_account_id uuid not null,
  -- The event that it is for; empty: one subscription is for all.
  event text not null,
  region text not null,
  status text not null check (status in ('none', 'creating', 'active', 'renewing', 'failed', 'deleting')),
  -- What the third party calls it, any JSON; null: none was created.
  external_id jsonb,
  -- The one before it, which is yet to be deleted at the third party.
  replaced_id jsonb,
  -- The next request creates another one, although this one has not ended.
  is_replacement_due boolean not null default false,
  expires_at timestamptz(3),
  -- When a worker makes the next request; while one does, when its lease expires. Null: never.
  due_at timestamptz(3),
  -- Fencing token of the worker that makes a request: after a takeover the first holder can store nothing any more.
  lease_id uuid,
  -- Requests since the last success, the present one included.
  attempts integer not null default 0,
  -- Of the last request; empty after a success.
  error text not null default '',
  -- Since when no request succeeds; null: the last one did.
  failed_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (environment_id, integrated_account_id, event),
  foreign key (environment_id, integrated_account_id) references integrated_account (environment_id, id) on delete cascade
) with (fillfactor = 80);
create index webhook_subscription_due on webhook_subscription (due_at) where due_at is not null;

-- How often the third party calls about an account: written by workers every few seconds for many accounts at once.
create table webhook_activity (
  environment_id uuid not null,
  integrated_account_id uuid not null,
  first_inbound_at timestamptz(3) not null,
  last_inbound_at timestamptz(3) not null,
  inbound_count bigint not null,
  -- The longest gap between two deliveries, decaying by half every two weeks.
  usual_gap_seconds double precision not null default 0,
  -- When it counts as silent unless there is a delivery before; null: not enough is known, or it has been announced.
  silent_at timestamptz(3),
  -- When the silence was announced that has not ended.
  silent_since timestamptz(3),
  primary key (environment_id, integrated_account_id),
  foreign key (environment_id, integrated_account_id) references integrated_account (environment_id, id) on delete cascade
) with (fillfactor = 70);
create index webhook_activity_silent on webhook_activity (silent_at) where silent_at is not null;
