alter table integrated_account
  -- Since when calls are answered with 401 and none has succeeded; null: none was since the last success or new credentials.
  add column unauthorized_since timestamptz(3),
  -- When a call last succeeded after another one was answered with 401, with the same credentials.
  add column worked_again_at timestamptz(3);

-- When the next entry was written; null: the entry is the account's latest, which is kept.
alter table integrated_account_history add column superseded_at timestamptz(3);
update integrated_account_history entry set superseded_at = next.occurred_at
from (
  select environment_id, integrated_account_id, id,
    lead(occurred_at) over (partition by environment_id, integrated_account_id order by id) as occurred_at
  from integrated_account_history
) next
where next.occurred_at is not null and entry.environment_id = next.environment_id
  and entry.integrated_account_id = next.integrated_account_id and entry.id = next.id;
create index integrated_account_history_superseded on integrated_account_history (superseded_at)
  where superseded_at is not null;
-- Accounts that wait for new credentials since before the column: a call that succeeds may still make them active again, unless
-- their grant was refused.
update integrated_account account set unauthorized_since = account.updated_at
where account.status = 'needs_reauth' and (
  select cause from integrated_account_history entry
  where entry.environment_id = account.environment_id and entry.integrated_account_id = account.id
  order by entry.id desc limit 1
) is not distinct from 'unauthorized';
