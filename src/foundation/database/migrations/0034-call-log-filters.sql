-- The lists of what was sent for one kind of cause, and of what failed in any way.
create index call_log_entry_of_cause_kind on call_log_entry (environment_id, cause, id);
create index call_log_entry_not_successful on call_log_entry (environment_id, id) where class <> 'success';
