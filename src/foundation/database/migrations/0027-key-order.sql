-- What people write is stored as `json`, which keeps the order of keys: elements of XML, fields of forms, parameters of queries and
-- choices of credentials are sent and shown in the order in which they were written. Rows from before keep the order that `jsonb`
-- gave them until they are written again.
alter table integration alter column config type json using config::json;
alter table environment_integration alter column override type json using override::json;
alter table unified_model alter column config type json using config::json;
alter table unified_mapping alter column config type json using config::json;
alter table sync_job alter column resources type json using resources::json, alter column args_schema type json using args_schema::json;
alter table sync_job_cron_trigger alter column args type json using args::json, alter column resources type json using resources::json;
alter table sync_job_run alter column args type json using args::json, alter column resources type json using resources::json;
