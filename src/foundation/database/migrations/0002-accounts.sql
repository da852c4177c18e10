alter table integrated_account
  -- Id that the third party gives the account, read when it is activated; null: unknown, or to be read anew.
  add column external_id text,
  -- When the customer has to connect it again at the latest; null: never, as far as is known.
  add column reauthorization_due_at timestamptz(3),
  -- When the warning before that is due; null: never, or given already.
  add column reauthorization_warning_at timestamptz(3);
create index integrated_account_warning on integrated_account (reauthorization_warning_at)
  where reauthorization_warning_at is not null;

alter table account_token
  -- When a request for a token was interrupted: the response, and with it a replaced refresh token, may be lost.
  add column interrupted_at timestamptz(3);

-- Deleted accounts whose subscriptions and grants are to be ended at the third party.
create table account_removal (
  id uuid primary key,
  region text not null,
  -- {account, config, connection, secrets, subscriptions} of the account when it was deleted, encrypted with a key of the row's own, which is destroyed
  -- with the row: the keys of its environment may be gone before.
  sealed bytea not null,
  due_at timestamptz(3) not null default now(),
  attempts integer not null default 0
) with (fillfactor = 80);
create index account_removal_due on account_removal (due_at);

-- What the requests for tokens of one environment to one host share: the rate, and until when Retry-After or the circuit
-- breaker blocks them. No foreign key: rows without a request for an hour are deleted.
create table token_host (
  environment_id uuid not null,
  -- Host and port, lower case.
  host text not null,
  -- Generic cell rate algorithm: when the next request would come if all were evenly spaced.
  next_at timestamptz(3) not null,
  -- No request before this time.
  blocked_until timestamptz(3),
  primary key (environment_id, host)
) with (fillfactor = 50);

alter table environment_integration
  -- When the secret of the client ends that the definition registers with the third party; null: not known.
  add column client_secret_expires_at timestamptz(3),
  -- The end that was announced last.
  add column client_secret_warned_for timestamptz(3);

-- What an item of an inbound webhook finds its accounts by (`context_lookup`): a hash of installation, context key and value.
create function context_lookup_key(installation uuid, field text, value text) returns bigint
language sql immutable parallel safe
return hashtextextended(installation::text || length(field)::text || ':' || field || value, 0);

-- The hashes of every text and number at the top of a context, and of those in the lists there, the first 1000 of a list.
create function context_lookup_keys(installation uuid, context jsonb) returns bigint[]
language sql immutable parallel safe
return array(
  select context_lookup_key(installation, field, value #>> '{}')
  from jsonb_each(context) as entry (field, content),
    jsonb_array_elements(case jsonb_typeof(content) when 'array' then content else jsonb_build_array(content) end)
      with ordinality as item (value, position)
  where position <= 1000 and jsonb_typeof(value) in ('string', 'number')
);

-- Without a list of pending entries: a lookup would read all of it.
create index integrated_account_lookup on integrated_account
  using gin (context_lookup_keys(environment_integration_id, context)) with (fastupdate = off);
