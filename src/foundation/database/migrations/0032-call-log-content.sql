-- Headers and bodies of logged requests are customer data: one encrypted value for each row. What the plain columns hold goes with
-- them; no row is older than the days of the log.
alter table call_log_entry
  drop column request_headers,
  drop column request_body,
  drop column response_headers,
  drop column response_body,
  -- JSON, encrypted under the data key of the environment; null unless the request failed or was sampled.
  add column content bytea;
-- The rows that a rotation of data keys reads, a page at a time.
create index call_log_entry_with_content on call_log_entry (environment_id, id) where content is not null;
