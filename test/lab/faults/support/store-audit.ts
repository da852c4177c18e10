import type pg from 'pg'

/** A run in the hands of a daemon. */
export interface HeldRun {
  readonly runId: string
  readonly attempt: number
}

/** What is stored of one run, by the name it gave its records. */
export interface StoredRun {
  readonly run: string
  readonly records: number
  /** Every record is what the third party has under its id. */
  readonly isExact: boolean
}

/** Begins to note, inside the customer's database, which daemon takes which run and which one writes for it, and when. */
export async function auditStore(store: pg.Pool): Promise<void> {
  await store.query(`
    create schema audit;
    create table audit.take (at timestamptz default clock_timestamp(), run_id uuid, attempt integer, daemon text);
    create table audit.write (at timestamptz default clock_timestamp(), run_id uuid, daemon text);
    create index on audit.take (run_id, at);
    create function audit.note_take() returns trigger language plpgsql as $$ begin
      insert into audit.take (run_id, attempt, daemon) values (new.run_id, new.attempt, current_setting('application_name'));
      return null; end $$;
    create function audit.note_write() returns trigger language plpgsql as $$ begin
      insert into audit.write (run_id, daemon)
        select distinct run_id, current_setting('application_name') from changed;
      return null; end $$;
    create trigger take after insert or update on public.patchbay_run_holder
      for each row execute function audit.note_take();
    create trigger inserted after insert on public.contacts
      referencing new table as changed for each statement execute function audit.note_write();
    create trigger updated after update on public.contacts
      referencing new table as changed for each statement execute function audit.note_write()`)
}

/** Pages that were written, and those of them by a daemon that was not the last one to take the run. */
export async function countWrites(store: pg.Pool): Promise<{ readonly all: number; readonly foreign: number }> {
  const { rows } = await store.query(`
    select count(*)::integer as "all", count(*) filter (where holder.daemon <> w.daemon)::integer as "foreign"
    from audit.write w cross join lateral (
      select t.daemon from audit.take t where t.run_id = w.run_id and t.at <= w.at order by t.at desc limit 1) holder`)
  return rows[0]
}

/** Runs that the daemon holds, or has completed. */
export async function takenBy(store: pg.Pool, daemon: string): Promise<readonly string[]> {
  const { rows } = await store.query(
    `select run_id from (select distinct on (run_id) run_id, daemon from audit.take order by run_id, at desc) last
     where daemon = $1`,
    [daemon],
  )
  return rows.map(({ run_id }) => run_id)
}

/** The runs the daemon had in its hands at that moment, or had completed, and in which attempt. */
export async function heldAt(store: pg.Pool, daemon: string, at: Date): Promise<readonly HeldRun[]> {
  const { rows } = await store.query(
    `select run_id as "runId", attempt from (
       select distinct on (run_id) run_id, attempt, daemon from audit.take where at <= $2 order by run_id, at desc) last
     where daemon = $1`,
    [daemon, at],
  )
  return rows
}

/** What is stored of every run. Ids are unique by the primary key of the table. */
export async function readStored(store: pg.Pool, records: number): Promise<readonly StoredRun[]> {
  const { rows } = await store.query(
    `select record->>'run' as run, count(*)::integer as records, bool_and(
       _id = (record->>'run') || '-' || (record->>'place') and (record->>'place')::integer between 0 and $1 - 1
       and record = jsonb_build_object('id', _id, 'run', record->>'run', 'place', (record->>'place')::integer)
     ) as "isExact" from public.contacts group by 1`,
    [records],
  )
  return rows
}
