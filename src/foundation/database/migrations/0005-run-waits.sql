-- Until when the holder of a lease waits for the rate limit of the third party; past or null: it does not.
alter table run_lease add column waiting_until timestamptz(3);
