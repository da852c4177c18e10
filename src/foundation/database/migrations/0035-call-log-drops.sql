-- Entries of the request log that were not stored, by the hour in which they were dropped; kept as long as the entries.
create table call_log_drop (
  environment_id uuid not null,
  hour timestamptz not null,
  entries bigint not null,
  primary key (environment_id, hour)
) partition by range (hour);
create table call_log_drop_default partition of call_log_drop default;
select create_first_days('call_log_drop');
