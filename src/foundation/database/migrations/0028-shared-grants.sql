-- Accounts of one customer at a third party may share a grant there: the revocation of one that was deleted looks for the others.
create index integrated_account_external_id on integrated_account (environment_id, external_id) where external_id is not null;
