alter table account_token
  -- When the last request for a token was granted; null: never since there is this column.
  add column granted_at timestamptz(3),
  -- When the failures in a row began; null: the last request did not fail.
  add column failing_since timestamptz(3);
