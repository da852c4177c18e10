import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'

/** Names the socket file only (`.s.PGSQL.5432`); nothing listens on TCP. */
export const SOCKET_PORT = 5432
export const SUPERUSER = 'patchbay'

const POLL_MS = 20
/** PostgreSQL's "the database system is starting up" and its siblings. */
const STARTING_STATES = new Set(['57P03', '57P01', '57P02'])

/** The process id in the lock file of a data directory, or `undefined` when there is none. */
export function postmasterPid(dataDir: string): number | undefined {
  const file = join(dataDir, 'postmaster.pid')
  if (!existsSync(file)) return undefined
  const pid = Number.parseInt(readFileSync(file, 'utf8'), 10)
  return Number.isInteger(pid) ? pid : undefined
}

/** Tells whether the process is a PostgreSQL that runs: neither a zombie that is not reaped yet, nor a later process with its id. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch {
    return false // ESRCH: gone. EPERM cannot happen: the server runs under our own uid, or we are root.
  }
  try {
    const [, name = '', state] = /\((.*)\) (\S)/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? []
    return state !== 'Z' && name === 'postgres'
  } catch {
    return true // no /proc on this platform: the signal's answer stands
  }
}

/**
 * Removes the lock files of a server that is dead but not reaped (a zombie still answers signal 0, so PostgreSQL itself
 * believes in it). A live server's files are never touched.
 */
export function clearStaleLocks(dataDir: string, socketDir: string): void {
  const pid = postmasterPid(dataDir)
  if (pid === undefined || isAlive(pid)) return
  rmSync(join(dataDir, 'postmaster.pid'), { force: true })
  rmSync(join(socketDir, `.s.PGSQL.${SOCKET_PORT}.lock`), { force: true })
  rmSync(join(socketDir, `.s.PGSQL.${SOCKET_PORT}`), { force: true })
}

/**
 * Waits until a server accepts connections on the socket.
 *
 * @param isGone tells that no server is coming, so that waiting ends early
 * @returns false when none came within `deadlineMs` or `isGone` said so
 */
export async function waitForServer(socketDir: string, deadlineMs: number, isGone: () => boolean): Promise<boolean> {
  for (const end = Date.now() + deadlineMs; Date.now() < end; ) {
    const state = await probe(socketDir)
    if (state === 'ready') return true
    if (state === 'absent' && isGone()) return false
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  return false
}

async function probe(socketDir: string): Promise<'ready' | 'absent' | 'starting'> {
  const client = new pg.Client({ host: socketDir, port: SOCKET_PORT, user: SUPERUSER, database: 'postgres' })
  try {
    await client.connect()
    await client.end()
    return 'ready'
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    if (code === 'ENOENT' || code === 'ECONNREFUSED') return 'absent'
    if (STARTING_STATES.has(code) || code === 'ECONNRESET') return 'starting'
    throw error
  }
}
