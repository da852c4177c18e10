-- Teams, environments, tokens, keys and secrets, integrations, accounts, jobs, triggers, webhooks.
--
-- Every row of a tenant carries its environment, which is part of the primary key and of every foreign key: a statement
-- that forgets it cannot reach another tenant's row by id alone. "version" counts writes; the etag is made of it.

create table team (
  id uuid primary key,
  name text not null,
  domain text not null default '',
  logo text not null default '',
  is_verified boolean not null default false,
  is_white_label boolean not null default false,
  tos_link text not null default '',
  allow_impersonation boolean not null default false,
  -- The team of the first start: its tokens administer the installation (other teams).
  is_operator boolean not null default false,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  version integer not null default 1
);
create unique index team_operator on team (is_operator) where is_operator;

create table environment (
  id uuid primary key,
  team_id uuid not null references team (id),
  name text not null,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  version integer not null default 1,
  unique (team_id, name)
);

create table api_token (
  id uuid primary key,
  team_id uuid not null references team (id) on delete cascade,
  environment_id uuid references environment (id) on delete cascade,
  kind text not null check (kind in ('team', 'environment')),
  name text not null,
  -- SHA-256 of the token: 32 random-looking bytes, so a plain index serves authentication.
  token_hash bytea not null,
  hint text not null,
  expires_at timestamptz(3),
  revoked_at timestamptz(3),
  last_used_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  version integer not null default 1,
  check ((kind = 'environment') = (environment_id is not null))
);
create unique index api_token_hash on api_token (token_hash);
create index api_token_team on api_token (team_id, id desc);

-- A data key encrypts the secrets of one owner (an environment, or a team for its integrations) and is itself wrapped.
create table data_key (
  id uuid primary key,
  owner_id uuid not null,
  key_encryption_key_id text not null,
  wrapped_key bytea not null,
  is_current boolean not null default true,
  created_at timestamptz(3) not null default now()
);
create unique index data_key_current on data_key (owner_id) where is_current;

create table secret (
  owner_id uuid not null,
  subject_type text not null,
  subject_id uuid not null,
  name text not null,
  data_key_id uuid not null references data_key (id),
  sealed bytea not null,
  created_at timestamptz(3) not null default now(),
  primary key (owner_id, subject_type, subject_id, name)
);

create table idempotency_key (
  owner_id uuid not null,
  request_id uuid not null,
  method text not null,
  -- The digest of the request and its response, encrypted: both may hold a secret.
  sealed_answer bytea,
  created_at timestamptz(3) not null default now(),
  primary key (owner_id, request_id)
);
create index idempotency_key_age on idempotency_key (created_at);

create table integration (
  id uuid primary key,
  team_id uuid not null references team (id),
  name text not null,
  category text not null default '',
  is_beta boolean not null default false,
  sharing text not null default 'deny' check (sharing in ('allow', 'ask', 'deny')),
  -- Secret leaves are masked here; their values are rows of "secret" named by path.
  config jsonb not null,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  version integer not null default 1
);
create unique index integration_name on integration (team_id, name);
create index integration_shared on integration (id desc) where sharing <> 'deny';

create table integration_grant (
  integration_id uuid not null references integration (id) on delete cascade,
  team_id uuid not null references team (id) on delete cascade,
  created_at timestamptz(3) not null default now(),
  primary key (integration_id, team_id)
);

create table environment_integration (
  environment_id uuid not null references environment (id),
  id uuid not null,
  integration_id uuid not null references integration (id),
  show_in_catalog boolean not null,
  is_enabled boolean not null,
  override jsonb not null,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  version integer not null default 1,
  primary key (environment_id, id)
);
create unique index environment_integration_pair on environment_integration (environment_id, integration_id);
create index environment_integration_of_integration on environment_integration (integration_id);

create table integrated_account (
  environment_id uuid not null,
  id uuid not null,
  environment_integration_id uuid not null,
  tenant_id text not null,
  authentication_method text not null
    check (authentication_method in ('oauth2', 'api_key', 'oauth2_client_credentials', 'vendor_oauth')),
  context jsonb not null,
  status text not null
    check (status in ('active', 'connecting', 'post_install_error', 'validation_error', 'needs_reauth')),
  last_error text not null default '',
  last_action_result jsonb not null default '{}',
  is_sandbox boolean not null,
  region text not null check (region in ('wnam', 'enam', 'apac', 'eu')),
  object_store_context_fields text[] not null,
  -- When a worker may connect it next; while one does, when its lease expires.
  connecting_due_at timestamptz(3) not null default now(),
  -- Fencing token of the worker that connects it: after a takeover the first holder can store nothing any more.
  connecting_lease_id uuid,
  connecting_tries integer not null default 0,
  -- {resource, method, occurred_at} of the last 403.
  last_forbidden_error jsonb,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  version integer not null default 1,
  primary key (environment_id, id),
  constraint integrated_account_installation foreign key (environment_id, environment_integration_id)
    references environment_integration (environment_id, id)
);
create index integrated_account_of_installation on integrated_account (environment_id, environment_integration_id, id desc);
-- Accounts that workers have yet to verify; a handful of rows at any moment.
create index integrated_account_connecting on integrated_account (connecting_due_at) where status = 'connecting';
create index integrated_account_of_tenant on integrated_account (environment_id, tenant_id, id desc);

create table integrated_account_history (
  environment_id uuid not null,
  integrated_account_id uuid not null,
  id uuid not null,
  from_status text,
  to_status text not null,
  cause text not null,
  last_error text not null default '',
  occurred_at timestamptz(3) not null default now(),
  primary key (environment_id, integrated_account_id, id),
  foreign key (environment_id, integrated_account_id)
    references integrated_account (environment_id, id) on delete cascade
);

-- Expiry and refresh state of the accounts' tokens; the tokens themselves are secrets of the account.
create table account_token (
  environment_id uuid not null,
  integrated_account_id uuid not null,
  -- Of the account, where it never changes.
  region text not null,
  -- Counts tokens. A refresh names the version that it saw, so that a token is requested once.
  version integer not null default 0,
  expires_at timestamptz(3),
  -- When the background refresh is due; null: never.
  due_at timestamptz(3),
  -- Lease of the refresh under way. An expired one may be taken over; its first holder can then store nothing any more.
  lease_id uuid,
  lease_expires_at timestamptz(3),
  -- Consecutive failures since the last token.
  failures integer not null default 0,
  -- Backoff: no refresh before this time, because of the last error {kind, message}.
  retry_at timestamptz(3),
  error jsonb,
  primary key (environment_id, integrated_account_id),
  constraint account_token_account foreign key (environment_id, integrated_account_id)
    references integrated_account (environment_id, id) on delete cascade
) with (fillfactor = 80);
create index account_token_due on account_token (due_at) where due_at is not null;

create table sync_job (
  environment_id uuid not null references environment (id),
  id uuid not null,
  label text not null,
  integration_name text not null,
  resources jsonb not null,
  args_schema jsonb not null,
  args_validation text not null default '',
  error_handling text not null default 'ignore' check (error_handling in ('fail_fast', 'ignore', 'batch')),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  version integer not null default 1,
  primary key (environment_id, id)
);

create table webhook (
  environment_id uuid not null references environment (id),
  id uuid not null,
  target_url text not null,
  description text not null default '',
  event_types text[] not null,
  -- As the caller wrote it; empty: every event of the types.
  filter jsonb not null default '{}',
  -- Names of custom headers in lower case; the values are secrets of the webhook.
  header_names text[] not null default '{}',
  envelope text not null default 'standard' check (envelope in ('standard', 'cloudevents')),
  -- A further signature header for receivers that know an older scheme.
  compatibility text not null default 'none' check (compatibility in ('none', 'single_header_base64', 'single_header_hex')),
  -- At most so many requests per window of so many seconds; null: as fast as the receiver answers.
  rate_limit_requests integer,
  rate_limit_seconds integer,
  is_active boolean not null,
  -- Why the service turned it off; null while it is active, and when a caller did.
  disabled_reason text check (disabled_reason in ('gone', 'failing')),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  version integer not null default 1,
  primary key (environment_id, id),
  check (num_nonnulls(rate_limit_requests, rate_limit_seconds) in (0, 2)),
  check (disabled_reason is null or not is_active)
);

-- A webhook whose attempts have only failed since its last success; the next success deletes the row. Apart from the
-- webhook, so that attempts and PATCH do not wait for each other and attempts do not change the etag.
create table webhook_failure (
  environment_id uuid not null,
  webhook_id uuid not null,
  failing_since timestamptz(3) not null default now(),
  -- Failed attempts since then.
  attempts integer not null,
  -- Whether webhook:failing was recorded: then the success is webhook:recovered.
  is_announced boolean not null default false,
  primary key (environment_id, webhook_id),
  foreign key (environment_id, webhook_id) references webhook (environment_id, id) on delete cascade
) with (fillfactor = 70);

-- The row that PATCH writes. What the ticks need lives in trigger_schedule, so that neither waits for the other.
create table sync_job_cron_trigger (
  environment_id uuid not null,
  id uuid not null,
  sync_job_id uuid not null,
  integrated_account_id uuid not null,
  cron_expression text not null,
  daemon_group_key text,
  webhook_id uuid,
  args jsonb not null,
  -- Null: the job's resources.
  resources jsonb,
  -- Null: the job's.
  error_handling text check (error_handling in ('fail_fast', 'ignore', 'batch')),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  version integer not null default 1,
  primary key (environment_id, id),
  constraint sync_job_cron_trigger_destination check (num_nonnulls(daemon_group_key, webhook_id) = 1),
  constraint sync_job_cron_trigger_job foreign key (environment_id, sync_job_id) references sync_job (environment_id, id),
  constraint sync_job_cron_trigger_account foreign key (environment_id, integrated_account_id)
    references integrated_account (environment_id, id),
  constraint sync_job_cron_trigger_webhook foreign key (environment_id, webhook_id) references webhook (environment_id, id)
) with (fillfactor = 80);
create index sync_job_cron_trigger_of_job on sync_job_cron_trigger (environment_id, sync_job_id, id desc);
create index sync_job_cron_trigger_of_account on sync_job_cron_trigger (environment_id, integrated_account_id, id desc);
create index sync_job_cron_trigger_of_webhook on sync_job_cron_trigger (environment_id, webhook_id)
  where webhook_id is not null;
