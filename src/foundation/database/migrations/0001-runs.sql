-- Schedules, runs, their queue, and who executes runs.
--
-- Four kinds of tables by how they are written. trigger_schedule is the narrow row that ticks update, apart from the trigger
-- that PATCH updates. sync_job_run is history: one row per tick, partitioned by day so that old days are dropped whole; no
-- index holds a column that changes, so claiming and settling a run are in-page (HOT) updates. run_queue holds what waits
-- and run_lease what is leased: small, unpartitioned, so that a claim reads one index and not one per day.
-- No foreign key leaves these tables: it would lock rows of others at every tick, and history outlives what it is about.
--
-- Rows of these tables are short-lived, so autovacuum comes early and does not pause. On the queue it does not truncate:
-- a plan made for a table without pages reads all of it once per tick, which a burst after a quiet time pays tenfold until
-- the next analyze; and truncating takes an exclusive lock.

create table trigger_schedule (
  trigger_id uuid primary key,
  environment_id uuid not null,
  -- A hash of the id: the due index begins with it, so a claim reads one short range and a cluster can split by it.
  shard smallint not null check (shard between 0 and 63),
  -- The account's, which never changes.
  region text not null,
  cron_expression text not null,
  -- Null: nothing comes due, because the trigger is paused or its expression could not be evaluated (error).
  next_fire_at timestamptz(3),
  is_paused boolean not null default false,
  error text,
  last_scheduled_for timestamptz(3),
  last_run_id uuid,
  last_run_status text check (last_run_status in (
    'created', 'running', 'rate_limited', 'completed', 'partially_completed', 'failed', 'stopped', 'skipped'
  )),
  constraint trigger_schedule_trigger foreign key (environment_id, trigger_id)
    references sync_job_cron_trigger (environment_id, id) on delete cascade
) with (
  fillfactor = 70,
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0
);
create index trigger_schedule_due on trigger_schedule (shard, next_fire_at, trigger_id) where next_fire_at is not null;

-- Missed stretches by day, like runs: the ledger of a day is dropped whole. No foreign key to the schedule: making and
-- dropping a day would have to lock every tick out. A delete of a trigger deletes its stretches.
create table missed_ticks (
  environment_id uuid not null,
  trigger_id uuid not null,
  first_at timestamptz(3) not null,
  last_at timestamptz(3) not null,
  -- A lower bound when the stretch was too long to count.
  count integer not null check (count > 0),
  recorded_at timestamptz(3) not null default now(),
  primary key (trigger_id, last_at)
) partition by range (last_at);
create table missed_ticks_default partition of missed_ticks default;
select create_first_days('missed_ticks');

create table sync_job_run (
  id uuid not null,
  -- The tick; of a manual run, the moment it was asked for.
  scheduled_for timestamptz(3) not null,
  environment_id uuid not null,
  trigger_id uuid,
  kind text not null check (kind in ('cron', 'manual')),
  sync_job_id uuid not null,
  integrated_account_id uuid not null,
  region text not null,
  status text not null check (status in (
    'created', 'running', 'rate_limited', 'completed', 'partially_completed', 'failed', 'stopped', 'skipped'
  )),
  skip_reason text check ((status = 'skipped') = (skip_reason is not null)),
  daemon_group_key text,
  webhook_id uuid,
  resources jsonb not null,
  args jsonb not null,
  error_handling text not null check (error_handling in ('fail_fast', 'ignore', 'batch')),
  ignore_previous_run boolean not null,
  attempt integer not null default 0,
  resource_stats jsonb not null default '[]',
  error jsonb,
  started_at timestamptz(3),
  finished_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  version integer not null default 1,
  primary key (id, scheduled_for),
  check (num_nonnulls(daemon_group_key, webhook_id) = 1)
) partition by range (scheduled_for);
-- The guarantee: one row per trigger and tick, however many processes insert it and however often.
create unique index sync_job_run_tick on sync_job_run (trigger_id, scheduled_for, kind);
-- The two indexes that lists use; each is 3 of the 14 µs that inserting a run takes.
create index sync_job_run_newest on sync_job_run (environment_id, scheduled_for desc, id desc);
create index sync_job_run_of_account on sync_job_run (integrated_account_id, scheduled_for desc, id desc);
-- Ticks of days without a partition of their own: before partitions were first made, or caught up from long ago.
create table sync_job_run_default partition of sync_job_run default with (
  fillfactor = 85,
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0
);
select create_first_days('sync_job_run', 'with (
  fillfactor = 85,
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0
)');

create table run_queue (
  run_id uuid primary key,
  scheduled_for timestamptz(3) not null,
  environment_id uuid not null,
  integrated_account_id uuid not null,
  trigger_id uuid,
  region text not null,
  -- 'webhook' for the workers, 'daemon:<environment>:<key>' for the daemons of one group.
  queue_group text not null,
  -- Milliseconds of a virtual clock: the moment it may start, plus a share for everything its account has waiting.
  fair_rank bigint not null,
  available_at timestamptz(3) not null,
  -- Attempts that were made and count.
  attempt integer not null,
  -- Attempts up to this one do not count towards the limit: the run made progress since, or was retried by a call.
  attempt_base integer not null default 0
) with (
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0,
  vacuum_truncate = off
);
create index run_queue_claim on run_queue (queue_group, fair_rank, run_id);
create index run_queue_of_account on run_queue (integrated_account_id, trigger_id);
create index run_queue_of_group on run_queue (environment_id, queue_group);

create table run_lease (
  run_id uuid primary key,
  scheduled_for timestamptz(3) not null,
  environment_id uuid not null,
  -- One running run per account, however many claim at the same moment (unique index).
  integrated_account_id uuid not null,
  trigger_id uuid,
  region text not null,
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
create unique index run_lease_account on run_lease (integrated_account_id);

create table run_checkpoint (
  run_id uuid primary key,
  scheduled_for timestamptz(3) not null,
  environment_id uuid not null,
  -- Null: a daemon may report its progress before it has a checkpoint.
  checkpoint jsonb,
  resource_stats jsonb not null,
  -- The decided outcome until the run is settled; a retry by a call clears it.
  ending jsonb,
  saves integer not null,
  saved_at timestamptz(3) not null
) with (
  fillfactor = 50,
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0
);

-- State of incremental syncs: the start of the last run of a trigger, or of a job and account (zero id), that read all of a
-- resource and delivered it. What is read, with which arguments and to which destination, is hashed into the key.
create table previous_run (
  environment_id uuid not null,
  sync_job_id uuid not null,
  integrated_account_id uuid not null,
  trigger_id uuid not null,
  resource_key text not null,
  started_at timestamptz(3) not null,
  primary key (environment_id, sync_job_id, integrated_account_id, trigger_id, resource_key)
);
-- Rows of a trigger go with it; those of runs created directly, whose arguments may always be new, only expire.
create index previous_run_without_trigger on previous_run (started_at)
  where trigger_id = '00000000-0000-0000-0000-000000000000';

-- Who executes runs outside the service. The runs they hold are leases like any others.
-- No index holds last_seen_at: it changes every few seconds, and daemons are few.
create table daemon (
  environment_id uuid not null references environment (id) on delete cascade,
  id uuid not null,
  label text not null,
  group_key text not null,
  -- Empty: all.
  regions text[] not null,
  version text not null,
  is_draining boolean not null default false,
  registered_at timestamptz(3) not null default now(),
  last_seen_at timestamptz(3) not null default now(),
  primary key (environment_id, id)
) with (fillfactor = 50);

-- Which workers there are: what a run that waits can say of those who could take it. Claims never read it. No index holds
-- last_seen_at: it changes every few seconds, and workers are few.
create table worker (
  -- The holder that its leases name.
  id text primary key,
  -- Empty: all.
  regions text[] not null,
  last_seen_at timestamptz(3) not null
) with (fillfactor = 50);
