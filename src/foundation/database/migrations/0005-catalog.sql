-- The terms of service that a customer accepts on the connect page before an account is connected: their address then.
alter table link_session
  -- Empty: not accepted, or there were none.
  add column terms_url text not null default '',
  add column terms_accepted_at timestamptz(3),
  add constraint link_session_terms check ((terms_url = '') = (terms_accepted_at is null));

alter table integrated_account
  -- When the account was last connected on the connect page; empty: none were asked for.
  add column terms_url text not null default '',
  add column terms_accepted_at timestamptz(3),
  add constraint integrated_account_terms check ((terms_url = '') = (terms_accepted_at is null));
