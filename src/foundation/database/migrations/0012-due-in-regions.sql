-- What comes due is claimed by region: a claim does not read what waits in regions that its worker does not serve.
drop index account_token_due;
create index account_token_due on account_token (region, due_at) where due_at is not null;
drop index webhook_subscription_due;
create index webhook_subscription_due on webhook_subscription (region, due_at) where due_at is not null;
drop index integrated_account_connecting;
create index integrated_account_connecting on integrated_account (region, connecting_due_at) where status = 'connecting';
drop index integrated_account_warning;
create index integrated_account_warning on integrated_account (region, reauthorization_warning_at)
  where reauthorization_warning_at is not null;
drop index account_removal_due;
create index account_removal_due on account_removal (region, due_at);
-- Ordered across regions: the region is compared in the index, without a look at the rows.
drop index trigger_schedule_due;
create index trigger_schedule_due on trigger_schedule (shard, next_fire_at, trigger_id, region)
  where next_fire_at is not null;
drop index run_queue_claim;
create index run_queue_claim on run_queue (queue_group, fair_rank, run_id, region);
