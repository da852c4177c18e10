-- Events are dispatched in turns of their environments, the oldest of each first.
alter table event_dispatch drop constraint event_dispatch_pkey, add primary key (environment_id, event_id),
  -- An event for more webhooks than a round creates deliveries: those up to this one have theirs.
  add column after_webhook_id uuid;
