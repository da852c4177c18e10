-- Receivers differ in how large a request may be; this is the size of the events of runs for one of them. The default is what all of
-- them were sent until now.
alter table webhook
  add column max_event_bytes integer not null default 262144 check (max_event_bytes between 8192 and 1048576);
