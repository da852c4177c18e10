-- A team, environment or integration that is deleted with more in it than a call deletes: nothing finds it any more, and a task
-- deletes what is in it in batches, at last its row.

alter table team add column deleted_at timestamptz(3);
alter table environment add column deleted_at timestamptz(3);
alter table integration add column deleted_at timestamptz(3);
-- Their names may be used again meanwhile.
alter table environment drop constraint environment_team_id_name_key;
create unique index environment_team_id_name_key on environment (team_id, name) where deleted_at is null;
drop index integration_name;
create unique index integration_name on integration (team_id, name) where deleted_at is null;
-- Until the task comes to them.
create index environment_of_team on environment (team_id);
create index integration_of_team on integration (team_id);
-- A task that deletes a team, environment or integration is the service's own: it outlives what it deletes, and has its id in the
-- place of an environment that can read it.
alter table task drop constraint task_environment_id_fkey;
