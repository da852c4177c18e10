-- How often the subscription was made due: a worker that finds another value than the one it claimed has made its request
-- before the last of them, so that the next one is due at once.
alter table webhook_subscription add column requested integer not null default 0;
