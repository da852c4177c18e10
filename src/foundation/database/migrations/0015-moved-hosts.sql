-- Credentials are for the hosts of the version of the installation with which they were entered: those of an earlier version than
-- reauthorization_version are sent nowhere any more, and their accounts have to be connected again.
alter table environment_integration add column reauthorization_version integer not null default 0;
alter table integrated_account add column entered_version integer not null default 0;
