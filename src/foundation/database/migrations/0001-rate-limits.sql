-- What is counted in front of calls: requests per window, and calls in flight.
--
-- Unlogged, because a crash that forgets a count costs one window at most, and a count per call should not write a log.
-- Half-filled pages and no index on what changes: every update is an in-page (HOT) update.

create unlogged table request_budget (
  environment_id uuid not null,
  subject text not null,
  -- Number of the window that the counts are of, on the scale of its own length.
  window_number bigint not null,
  used integer not null,
  previous integer not null,
  -- The third party asked to wait until then.
  blocked_until timestamptz(3),
  touched_at timestamptz(3) not null default now(),
  primary key (environment_id, subject)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01);
create unlogged table request_slot (
  environment_id uuid not null,
  account_id uuid not null,
  slot smallint not null,
  holder uuid not null,
  expires_at timestamptz(3) not null,
  primary key (environment_id, account_id, slot)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01);
