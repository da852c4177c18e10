-- Link sessions: a customer connects or reconnects one account through the connect page.

create table link_session (
  environment_id uuid not null references environment (id) on delete cascade,
  id uuid not null,
  -- SHA-256 of the link token, which is random: no password hash is needed.
  token_hash bytea not null,
  status text not null check (status in ('created', 'opened', 'form', 'redirected', 'pending', 'exchanging', 'post_install',
    'validating', 'post_connect_form', 'completed', 'failed', 'expired', 'cancelled')),
  -- When it entered the status; an exchange that lasts too long is ended by it.
  status_at timestamptz(3) not null default now(),
  -- What the application asked for.
  tenant_id text not null,
  is_reconnect boolean not null,
  -- The account to reconnect, or the one that was connected. Sessions are deleted with it.
  integrated_account_id uuid,
  -- Null: every enabled installation that the catalogue shows.
  allowed_installation_ids uuid[],
  scopes text[] not null,
  context jsonb not null,
  region text not null check (region in ('wnam', 'enam', 'apac', 'eu')),
  is_sandbox boolean not null,
  object_store_context_fields text[] not null,
  -- Where the browser goes in the end; empty: it stays on the last page.
  redirect_uri text not null,
  -- Origins of the pages that may embed or open the connect page.
  origins text[] not null,
  locale text not null,
  persist_previous_context boolean not null,
  skip_post_connect_form boolean not null,
  expires_at timestamptz(3) not null,
  -- What the customer chose and entered; passwords are in sealed_values.
  environment_integration_id uuid,
  authentication_method text
    check (authentication_method in ('oauth2', 'api_key', 'oauth2_client_credentials', 'vendor_oauth')),
  form_values jsonb not null default '{}',
  -- Forms that were submitted.
  attempts integer not null default 0,
  -- SHA-256 of the key of the browser that opened it.
  browser_key_hash bytea,
  -- The authorisation under way: SHA-256 of its state, when that expires, the callback address that was sent.
  state_hash bytea,
  state_expires_at timestamptz(3),
  callback_uri text not null default '',
  -- Fences an exchange: one whose lease has ended stores nothing.
  exchange_id uuid,
  granted_scopes text[] not null default '{}',
  missing_scopes text[] not null default '{}',
  -- Values until the account has them: passwords, PKCE verifier, request token secret. Encrypted; null as soon as possible.
  sealed_values bytea,
  -- One-time ticket of a popup: its SHA-256, when it expires, and what it is exchanged for, encrypted.
  ticket_hash bytea,
  ticket_expires_at timestamptz(3),
  sealed_ticket bytea,
  -- A popup was opened with a ticket.
  is_popup boolean not null default false,
  -- Of the last attempt that failed.
  error_code text,
  error_message text not null default '',
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  version integer not null default 1,
  primary key (environment_id, id),
  constraint link_session_account foreign key (environment_id, integrated_account_id)
    references integrated_account (environment_id, id) on delete cascade
);
-- Addresses of the connect page hold the id without the environment.
create unique index link_session_id on link_session (id);
create unique index link_session_state on link_session (state_hash) where state_hash is not null;
create unique index link_session_ticket on link_session (ticket_hash) where ticket_hash is not null;
create index link_session_of_account on link_session (environment_id, integrated_account_id)
  where integrated_account_id is not null;
-- Sessions that end by time.
create index link_session_expiry on link_session (expires_at)
  where status in ('created', 'opened', 'form', 'redirected', 'pending', 'post_connect_form');
create index link_session_exchange on link_session (status_at) where status = 'exchanging';
-- Sessions that have ended, for retention.
create index link_session_ended on link_session (status_at) where status in ('completed', 'failed', 'expired', 'cancelled');

create table link_session_transition (
  environment_id uuid not null,
  link_session_id uuid not null,
  -- The session's version after the change.
  version integer not null,
  -- Null on the first row.
  from_status text,
  to_status text not null,
  cause text not null,
  error_code text,
  -- For people; secrets are redacted.
  message text not null default '',
  occurred_at timestamptz(3) not null default now(),
  primary key (environment_id, link_session_id, version),
  foreign key (environment_id, link_session_id) references link_session (environment_id, id) on delete cascade
);
