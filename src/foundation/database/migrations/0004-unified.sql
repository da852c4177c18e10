-- Unified models and mappings of customers; those that ship with the product are files.

-- A model of a team: a new one, or an extension of the shipped model of its name.
create table unified_model (
  id uuid primary key,
  team_id uuid not null references team (id) on delete cascade,
  name text not null,
  -- {label, description, resources}; of an extension only what differs.
  config jsonb not null,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  version integer not null default 1
);
create unique index unified_model_name on unified_model (team_id, name);

-- One layer of the mapping of a method ('*': of all methods) of a unified resource for an integration. Without an
-- environment it is the team's base, without an account the environment's.
create table unified_mapping (
  id uuid primary key,
  team_id uuid not null references team (id) on delete cascade,
  environment_id uuid references environment (id),
  integrated_account_id uuid,
  model text not null,
  resource text not null,
  integration_name text not null,
  method text not null,
  config jsonb not null,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  version integer not null default 1,
  check (integrated_account_id is null or environment_id is not null),
  foreign key (environment_id, integrated_account_id) references integrated_account (environment_id, id) on delete cascade
);
create unique index unified_mapping_of_team on unified_mapping (team_id, model, integration_name, resource, method)
  where environment_id is null;
create unique index unified_mapping_of_environment
  on unified_mapping (environment_id, model, integration_name, resource, method) where integrated_account_id is null;
create unique index unified_mapping_of_account
  on unified_mapping (environment_id, integrated_account_id, model, integration_name, resource, method)
  where integrated_account_id is not null;
-- Lists, newest first.
create index unified_mapping_list on unified_mapping (team_id, id desc);
