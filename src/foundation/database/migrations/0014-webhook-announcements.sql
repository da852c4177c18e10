-- Whether webhook:failing was recorded since the failures were counted anew. is_announced says that the next success is a recovery,
-- which stays when a caller enables a webhook that was turned off.
alter table webhook_failure add column is_failing_announced boolean not null default false;
update webhook_failure set is_failing_announced = is_announced where attempts > 0;
