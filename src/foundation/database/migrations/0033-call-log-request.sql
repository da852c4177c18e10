alter table call_log_entry
  -- The `x-request-id` of the request to this service that it was sent for; null: of no request.
  add column request_id text;
