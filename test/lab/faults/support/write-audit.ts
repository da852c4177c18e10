import type { Database } from '../../../../src/foundation/database/index.ts'
import { execute, query } from '../../../../src/foundation/database/index.ts'

/** A lease as it was taken: by whom, when by the database's clock. */
export interface TakenLease {
  readonly runId: string
  readonly at: Date
}

/**
 * Writes down inside the database who writes for runs: every change of a lease and every checkpoint, with the connection's
 * application name and the holder of the lease at that moment. What a process has in memory does not matter here.
 */
export async function installWriteAudit(database: Database): Promise<void> {
  for (const statement of STATEMENTS) await execute(database.pool, statement)
}

/** Notes which connections are whose. */
export async function registerWorker(database: Database, application: string, pid: number): Promise<void> {
  await execute(database.pool, 'insert into audit_worker (application, pid) values (:application, :pid)', {
    application,
    pid,
  })
}

/** How many writes were made in the name of another holder, but for the end of leases that had expired. */
export async function countForeignWrites(database: Database): Promise<number> {
  const [found] = await query<{ readonly count: number }>(
    database.pool,
    `select count(*) as count from audit_write a join audit_worker w on w.application = a.application
     where a.holder is distinct from w.pid::text and not (a.kind = 'ended' and a.is_expired)`,
  )
  return found?.count ?? Number.NaN
}

/** How many writes were seen at all. */
export async function countWrites(database: Database): Promise<number> {
  const [found] = await query<{ readonly count: number }>(database.pool, 'select count(*) as count from audit_write')
  return found?.count ?? Number.NaN
}

/** Every lease that was taken, in order. */
export async function readTakenLeases(database: Database): Promise<readonly TakenLease[]> {
  return await query(database.pool, `select run_id as "runId", at from audit_write where kind = 'taken' order by at`)
}

/** The process id is what a holder's name ends with. */
const PID_OF = (holder: string) => `split_part(${holder}, ':', 2)`

const STATEMENTS = [
  'create table audit_worker (application text primary key, pid integer not null)',
  `create table audit_write (kind text not null, run_id uuid not null, application text not null, holder text,
    is_expired boolean not null default false, at timestamptz not null default clock_timestamp())`,
  `create function audit_lease() returns trigger language plpgsql as $$ begin
    if tg_op = 'DELETE' then
      insert into audit_write (kind, run_id, application, holder, is_expired)
      values ('ended', old.run_id, current_setting('application_name'), ${PID_OF('old.holder')},
        old.expires_at <= clock_timestamp());
    else
      insert into audit_write (kind, run_id, application, holder)
      values (case tg_op when 'INSERT' then 'taken' else 'renewed' end, new.run_id, current_setting('application_name'),
        ${PID_OF('new.holder')});
    end if;
    return null;
  end $$`,
  'create trigger audit_lease after insert or update or delete on run_lease for each row execute function audit_lease()',
  `create function audit_checkpoint() returns trigger language plpgsql as $$ begin
    insert into audit_write (kind, run_id, application, holder)
    select 'saved', new.run_id, current_setting('application_name'),
      (select ${PID_OF('l.holder')} from run_lease l where l.run_id = new.run_id);
    return null;
  end $$`,
  'create trigger audit_checkpoint after insert or update on run_checkpoint for each row execute function audit_checkpoint()',
]
