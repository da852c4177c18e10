-- Rotation of keys: key encryption keys wrap data keys, data keys encrypt values.

-- Key encryption keys that wrap data keys. The key itself is in the settings. The reference from data_key decides whether one
-- may be retired: its row cannot be deleted while a data key needs it, also one that a transaction under way is storing.
create table key_encryption_key (
  id text primary key,
  created_at timestamptz(3) not null default now()
);
insert into key_encryption_key (id) select distinct key_encryption_key_id from data_key;

alter table data_key
  add constraint data_key_wrapped_under foreign key (key_encryption_key_id) references key_encryption_key (id),
  -- Of a key that a newer one has replaced (not is_current): when its values are encrypted anew next, or it is deleted.
  add column reseal_at timestamptz(3),
  -- Values that were left under it when a pass ended, because they cannot be read or are about to be deleted; null: no pass has
  -- ended yet.
  add column values_left integer,
  -- Since when no value is left under it.
  add column unused_since timestamptz(3);
create index data_key_by_key on data_key (key_encryption_key_id);
create index data_key_reseal on data_key (reseal_at) where not is_current;
-- For the check of the reference when a data key is deleted, and for values under one.
create index secret_data_key on secret (data_key_id);

alter table context_object
  -- The data key of the value; null: the object was stored before this column, and says it in its first bytes.
  add column data_key_id uuid;
update context_object set data_key_id = encode(substring(content from 1 for 16), 'hex')::uuid where content is not null;

-- Data keys that are to be replaced: all that are older than the request. Deleted when the last one is replaced.
create table data_key_rotation (
  id uuid primary key,
  -- The environment or team; null: all owners.
  owner_id uuid,
  requested_at timestamptz(3) not null default now()
);
create unique index data_key_rotation_scope on data_key_rotation (coalesce(owner_id, '00000000-0000-0000-0000-000000000000'));

-- Processes that run, and the key encryption keys that each has: a key writes only when all of them have it.
create table key_ring_process (
  id uuid primary key,
  -- Command, host and process id.
  name text not null,
  -- `id:fingerprint` of each key; the same id with other bytes is another key.
  known_keys text[] not null,
  -- The key under which it wraps new data keys.
  writes_with text not null,
  seen_at timestamptz(3) not null default now()
) with (fillfactor = 50);
