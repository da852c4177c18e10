-- Background tasks: what a call has started and workers do step by step.
--
-- The lease of a task is the lock on its row: a step locks it, does its work and stores the cursor in one transaction, so a
-- process that dies leaves the task at its last cursor and free at once. Tasks are few (limited per environment) and deleted
-- some time after their end.

create table task (
  environment_id uuid not null references environment (id) on delete cascade,
  id uuid not null,
  kind text not null,
  params jsonb not null,
  state text not null default 'queued' check (state in ('queued', 'running', 'completed', 'failed', 'cancelled')),
  -- Items looked at; how many there are, null when it is not known.
  done integer not null default 0,
  total integer,
  -- Where the next step begins; null before the first one.
  cursor jsonb,
  result jsonb not null default '{}',
  error text,
  -- Failed steps in a row.
  failures integer not null default 0,
  -- When the next step may begin; null when the task has ended.
  due_at timestamptz(3) default now(),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  started_at timestamptz(3),
  finished_at timestamptz(3),
  primary key (environment_id, id),
  check ((due_at is null) = (state in ('completed', 'failed', 'cancelled')))
) with (fillfactor = 70);
create index task_due on task (due_at, kind) where due_at is not null;
create index task_unfinished on task (environment_id) where due_at is not null;
create index task_finished on task (finished_at) where finished_at is not null;
