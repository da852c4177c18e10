-- Figures: how many accounts, triggers, runs, deliveries and inbound events of an environment are in each state. Triggers of
-- these tables append what a statement changes to `figure_delta`, in its transaction; workers fold that into `figure`. The sum
-- of both, read in one snapshot, is the count.
--
-- The states are those that List shows: `status` of accounts and runs (a leased run is running in it), `state` of deliveries and
-- inbound events, and of triggers what their schedule says. `day` is the day of the row's partition, with which its figures are
-- dropped; 1970-01-01 of tables without days.

create table figure (
  environment_id uuid not null references environment (id) on delete cascade,
  kind text not null,
  day date not null,
  state text not null,
  count bigint not null,
  primary key (environment_id, kind, day, state)
) with (
  fillfactor = 70,
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0
);
-- For days that are dropped.
create index figure_of_day on figure (kind, day);

-- Appended and deleted, never updated, so that no two changes wait for each other. No foreign key: it would lock the row of the
-- environment at every tick. Deltas of a deleted environment are dropped when they are folded.
create table figure_delta (
  environment_id uuid not null,
  kind text not null,
  day date not null,
  state text not null,
  delta integer not null
) with (
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0,
  vacuum_truncate = off
);
create index figure_delta_of_environment on figure_delta (environment_id);

-- The UTC day in a UUIDv7: its first 48 bits are milliseconds since 1970.
create function day_of_id(id uuid) returns date language sql immutable parallel safe
return date '1970-01-01' + (('x' || substr(id::text, 1, 8) || substr(id::text, 10, 4))::bit(48)::bigint / 86400000)::integer;

-- Of each kind a function that counts the changed rows by key, and the triggers that call it. One for statements costs 0 to 3 %
-- of an insert of runs and 3 to 14 % of an update in batches of 500 and more, one for rows doubles an update: so rows are looked
-- at where hardly an update changes the state, which then costs nothing. A trigger for statements of a partitioned table sees
-- the rows of all partitions, also of those that are made later.
do $do$
declare
  kept record;
  trigger_state constant text :=
    $$case when is_paused then 'paused' when error is not null then 'suspended' else 'active' end$$;
begin
  for kept in
    select *, format('environment_id, %L, %s as day, %s as state', kind, day, state) as keys from (values
      ('account', 'integrated_account', $$date '1970-01-01'$$, 'status', 'status'),
      ('trigger', 'trigger_schedule', $$date '1970-01-01'$$, trigger_state, 'is_paused, error'),
      ('run', 'sync_job_run', $$(scheduled_for at time zone 'UTC')::date$$, 'status', null),
      ('delivery', 'delivery', 'day_of_id(id)', 'state', null),
      ('inbound_event', 'inbound_event', 'day_of_id(id)', 'state', null)
    ) as listed (kind, name, day, state, columns)
  loop
    execute format($sql$
      create function count_%1$s() returns trigger language plpgsql as $$
      begin
        if tg_op = 'INSERT' then
          insert into figure_delta select %2$s, count(*) from new_row group by 1, 3, 4;
        elsif tg_op = 'DELETE' then
          insert into figure_delta select %2$s, -count(*) from old_row group by 1, 3, 4;
        elsif tg_op = 'TRUNCATE' then
          insert into figure_delta select %2$s, -count(*) from %1$s_default group by 1, 3, 4;
        elsif tg_level = 'ROW' then
          insert into figure_delta
          select %2$s, 1 from (select new.*) as given union all select %2$s, -1 from (select old.*) as given;
        else
          insert into figure_delta
          select %2$s, sum(delta)
          from (select *, 1 as delta from new_row union all select *, -1 from old_row) as changed
          group by 1, 3, 4 having sum(delta) <> 0;
        end if;
        return null;
      end $$;
      create trigger count_inserted after insert on %1$s referencing new table as new_row
        for each statement execute function count_%1$s();
      create trigger count_deleted after delete on %1$s referencing old table as old_row
        for each statement execute function count_%1$s();
    $sql$, kept.name, kept.keys);
    if kept.columns is null then
      execute format($sql$
        create trigger count_updated after update on %1$s referencing old table as old_row new table as new_row
          for each statement execute function count_%1$s();
        create trigger count_truncated before truncate on %1$s_default
          for each statement execute function count_%1$s();
      $sql$, kept.name);
    else
      execute format($sql$
        create trigger count_updated after update of %2$s on %1$s for each row
          when (row(old.%3$s) is distinct from row(new.%4$s)) execute function count_%1$s();
      $sql$, kept.name, kept.columns, replace(kept.columns, ', ', ', old.'), replace(kept.columns, ', ', ', new.'));
    end if;
    -- What there is: writers wait for the locks of the triggers until all of it is counted.
    execute format('insert into figure select %s, count(*) from %I where environment_id in (select id from environment)
      group by 1, 3, 4', kept.keys, kept.name);
  end loop;
end $do$;

-- Requests to third parties by the hour in which they ended, for a week. Written with the entries of the request log, dropped by
-- days.
create table call_hour (
  environment_id uuid not null,
  hour timestamptz(3) not null,
  -- Zero: sent for none.
  environment_integration_id uuid not null,
  class text not null,
  -- Requests by their duration: up to the first bound, up to the second, …, above the last.
  counts bigint[] not null,
  primary key (environment_id, hour, environment_integration_id, class)
) partition by range (hour);
create table call_hour_default partition of call_hour default with (fillfactor = 70);
select create_first_days('call_hour', 'with (fillfactor = 70)');
