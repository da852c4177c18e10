-- Every filter of a list has an index, so that one that finds little does not read what it skips.
create index integration_grant_newest on integration_grant (integration_id, created_at desc, team_id desc);

-- Of four filters with few values each, which PostgreSQL skips through; without the id, so that equal entries share their space.
create index integrated_account_of_kind on integrated_account
  (environment_id, status, region, is_sandbox, (coalesce(credential, authentication_method)));

create index link_session_of_tenant on link_session (environment_id, tenant_id, id desc);
create index link_session_of_status on link_session (environment_id, status, id desc);

create index task_of_state on task (environment_id, state, id desc);

-- The status of a run that ended otherwise than completed: what lists by status are for. With the status itself in an index,
-- each claim and settlement would write all indexes of the run.
alter table sync_job_run add column given_up text
  generated always as (case when status in ('partially_completed', 'failed', 'stopped', 'skipped') then status end) stored;
create index sync_job_run_given_up on sync_job_run (environment_id, given_up, scheduled_for desc, id desc)
  where given_up is not null;
create index sync_job_run_of_job on sync_job_run (sync_job_id, scheduled_for desc, id desc);

-- A call is in one of the two.
create index tool_server_call_ok on tool_server_call (environment_id, tool_server_id, id) where error_type = '';
create index tool_server_call_error on tool_server_call (environment_id, tool_server_id, id) where error_type <> '';
drop index tool_server_call_of_server;
