-- Whether tokens and keys of accounts may be issued to clients of the environment.
alter table environment add column allow_access_tokens boolean not null default false;
