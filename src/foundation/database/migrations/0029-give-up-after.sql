-- For how long runs of a job go on trying while the third party, or where the records go, is unavailable.
alter table sync_job add column give_up_after_seconds integer not null default 86400
  check (give_up_after_seconds between 0 and 604800);
