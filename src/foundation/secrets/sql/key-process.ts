import { type Db, execute, query } from '../../database/database.ts'

/** SQL: a process that announced itself within the last minute, twelve times its interval. */
export const LIVE = `seen_at > now() - interval '1 minute'`

/** A process that runs, with the key encryption keys that it has. */
export interface KeyRingProcess {
  readonly id: string
  /** Command, host and process id. */
  readonly name: string
  /** `id:fingerprint` of each key. */
  readonly knownKeys: readonly string[]
  /** Id of the key under which it wraps new data keys. */
  readonly writesWith: string
}

/** All live processes, by name. */
export async function listKeyRingProcesses(tx: Db): Promise<readonly KeyRingProcess[]> {
  return await query(
    tx,
    `select id, name, known_keys, writes_with from key_ring_process where ${LIVE} order by name, id`,
  )
}

/** Announces a process, and forgets those that have not for an hour. */
export async function announceProcess(tx: Db, process: KeyRingProcess): Promise<void> {
  await execute(
    tx,
    `with gone as (delete from key_ring_process where seen_at < now() - interval '1 hour' and id <> :id)
     insert into key_ring_process (id, name, known_keys, writes_with) values (:id, :name, :knownKeys::text[], :writesWith)
     on conflict (id) do update set known_keys = excluded.known_keys, writes_with = excluded.writes_with, seen_at = now()`,
    { ...process },
  )
}

/** Forgets a process that ends. */
export async function deleteProcess(tx: Db, id: string): Promise<void> {
  await execute(tx, 'delete from key_ring_process where id = :id', { id })
}
