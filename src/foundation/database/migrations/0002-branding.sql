-- How the connect page presents an environment to the customer's customers; empty: not given.
alter table environment
  add column branding_display_name text not null default '',
  add column branding_logo_url text not null default '',
  add column branding_accent_color text not null default '';

-- Pictures that the connect page serves from its own origin, so that a customer's browser asks no third party for them.
-- Public by nature, and the same for all environments that name the address.
create table connect_logo (
  -- SHA-256 of the address; the name under which the picture is served.
  hash bytea primary key check (octet_length(hash) = 32),
  url text not null,
  -- Null until it was fetched, and when that failed.
  content_type text,
  body bytea check (octet_length(body) <= 131072),
  -- Null: never attempted.
  attempted_at timestamptz,
  -- When a page showed it, to the day; unused ones are deleted.
  used_at timestamptz not null default now(),
  check ((content_type is null) = (body is null))
);
create index connect_logo_used on connect_logo (used_at);
