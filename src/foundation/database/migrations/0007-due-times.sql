-- Times at which work is due have milliseconds. A default of now() is rounded to the next one half of the time, and the claim that
-- follows at once finds nothing due.
alter table integrated_account alter column connecting_due_at set default date_trunc('milliseconds', now());
alter table account_removal alter column due_at set default date_trunc('milliseconds', now());
alter table context_object alter column upload_at set default date_trunc('milliseconds', now());
alter table task alter column due_at set default date_trunc('milliseconds', now());
