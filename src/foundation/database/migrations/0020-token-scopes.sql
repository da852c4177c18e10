-- What a token may do. Tokens of before may do everything, and so do those that a process of the version before creates.
alter table api_token
  add column preset text,
  add column scopes text[] not null default '{*}',
  add column limits jsonb,
  -- Issued for a page in a browser: short-lived, in no list, and deleted when it has expired.
  add column is_browser boolean not null default false;
create index api_token_browser on api_token (expires_at) where is_browser;
update api_token set preset = 'full';
