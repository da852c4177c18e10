-- Values of context keys that live in the object store (integrated_account.object_store_context_fields).
--
-- A row is written with its account, in one transaction, and holds the encrypted value until a worker has stored it as an
-- object; then it is the reference alone. So an account never names an object that was not stored, and an object without a
-- row never exists. A replaced value stays until readers of the row before are done. No foreign key: the rows of a deleted
-- account say which objects are to be deleted.

create table context_object (
  environment_id uuid not null,
  -- Names the object, which is never written again with another value.
  id uuid not null,
  integrated_account_id uuid not null,
  key text not null,
  -- Of the encrypted value.
  bytes integer not null,
  -- The encrypted value; null: it is in the object store.
  content bytea,
  -- When a worker stores it next, while there is content.
  upload_at timestamptz(3) not null default now(),
  -- When the object and this row are deleted; null: it is the value of the account's key.
  delete_at timestamptz(3),
  primary key (environment_id, id)
);
create unique index context_object_of_account on context_object (environment_id, integrated_account_id, key)
  where delete_at is null;
create index context_object_upload on context_object (upload_at) where content is not null;
create index context_object_delete on context_object (delete_at) where delete_at is not null;
