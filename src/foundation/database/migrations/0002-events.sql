-- The outbox: what happened, written in the transaction of the change.
--
-- Rows are inserted, read and dropped with their day, never updated but to remove a payload for good: what becomes of an event (its deliveries) is in tables
-- of its own that name (environment_id, event_id). Partitioned by the day in the id, a UUIDv7: an id alone finds its
-- partition, and is unique without a second column. No foreign key leaves the table: each insert would lock the
-- environment's row, and the event of a deletion outlives its subject.

create table event (
  environment_id uuid not null,
  id uuid not null,
  type text not null,
  -- The resource that the event is about; null when it has no id.
  subject_id uuid,
  -- The account that it concerns, whatever its subject; null when it concerns none.
  integrated_account_id uuid,
  payload jsonb not null,
  -- Of the payload as text: a page of a list is limited by it.
  payload_bytes integer not null,
  -- The webhook that received it in another way: the destination of the run that it is about.
  -- An example that a caller had sent to one webhook: nothing happened, and it was not dispatched to others.
  is_test boolean not null default false,
  except_webhook_id uuid,
  -- When its payload was removed by a call.
  expunged_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  primary key (environment_id, id)
) partition by range (id);
create index event_of_subject on event (environment_id, subject_id, id) where subject_id is not null;
create index event_of_account on event (environment_id, integrated_account_id, id) where integrated_account_id is not null;
create index event_of_type on event (environment_id, type, id);
-- Events of days without a partition of their own.
create table event_default partition of event default;
select create_first_days('event');

-- The events that have no deliveries yet: a row is inserted by the statement that inserts its event, and deleted in the
-- transaction that creates the event's deliveries, so each event is fanned out once.
create table event_dispatch (
  environment_id uuid not null,
  event_id uuid not null,
  -- The webhook that receives the event in another way: the destination of the run that it is about.
  except_webhook_id uuid,
  created_at timestamptz(3) not null default now(),
  -- The oldest events come first, whichever their environment.
  primary key (event_id, environment_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
