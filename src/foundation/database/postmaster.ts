import { existsSync, readFileSync, readlinkSync, realpathSync, rmSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'

const STOP_DEADLINE_MS = 20_000
const STOP_POLL_MS = 20

/** Where a server keeps its data and its socket. */
type ServerDirectories = Readonly<Record<'root' | 'dataDir' | 'socketDir', string>>

/** Names the socket file only (`.s.PGSQL.5432`); nothing listens on TCP. */
export const SOCKET_PORT = 5432

/** Where the lock file says `starting`, `ready` or `stopping`. */
const POSTMASTER_STATUS_LINE = 7

/** The process id in the lock file of a data directory, or `undefined` when there is none. */
export function postmasterPid(dataDir: string): number | undefined {
  const file = join(dataDir, 'postmaster.pid')
  if (!existsSync(file)) return undefined
  const pid = Number.parseInt(readFileSync(file, 'utf8'), 10)
  return Number.isInteger(pid) ? pid : undefined
}

/** True when the process is a running PostgreSQL: neither an unreaped zombie, nor a later process with the same id. */
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
    return true // no /proc on this platform: the signal's answer counts
  }
}

/** Whether the server of the directory runs. */
export function hasLivePostmaster({ dataDir }: Pick<ServerDirectories, 'dataDir'>): boolean {
  const pid = postmasterPid(dataDir)
  return pid !== undefined && isAlive(pid)
}

/** Where process ids mean the same: the start of the kernel and the namespace of process ids, which each container has of its own. */
export const CONTAINER_FILE = 'container'

export function containerIdentity(): string {
  try {
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()} ${readlinkSync('/proc/self/ns/pid')}\n`
  } catch {
    // Another platform.
    return `${hostname()}\n`
  }
}

/** Whether the process id in the lock file is of another container, so that nothing here tells whether it runs. */
export function isOfOtherContainer({ root, dataDir }: ServerDirectories): boolean {
  const file = join(root, CONTAINER_FILE)
  if (postmasterPid(dataDir) === undefined || !existsSync(file)) return false
  return readFileSync(file, 'utf8') !== containerIdentity()
}

/** Whether a server runs whose socket was removed, as by a program that cleans `/tmp`: nothing reaches it any more. */
export function hasLostSocket({ dataDir, socketDir }: ServerDirectories): boolean {
  if (!hasLivePostmaster({ dataDir }) || existsSync(join(socketDir, `.s.PGSQL.${SOCKET_PORT}`))) return false
  const status = readFileSync(join(dataDir, 'postmaster.pid'), 'utf8').split('\n')[POSTMASTER_STATUS_LINE]
  return status?.trim() === 'ready'
}

/**
 * The data directory whose server runs, when its lock file is in this one too: this is a copy of it. A directory that was moved with
 * its server is none: the path in the lock file is not there any more.
 */
export function copiedFrom(dataDir: string): string | undefined {
  const pid = postmasterPid(dataDir)
  if (pid === undefined || !isAlive(pid)) return undefined
  const [, original = dataDir] = readFileSync(join(dataDir, 'postmaster.pid'), 'utf8').split('\n')
  return existsSync(original) && realpathSync(original) !== realpathSync(dataDir) ? original : undefined
}

/**
 * Removes the lock files of a server that is dead but not reaped (a zombie still answers signal 0, so PostgreSQL itself
 * takes it for a live server). A live server's files are never touched.
 */
export function clearStaleLocks(dataDir: string, socketDir: string): void {
  const pid = postmasterPid(dataDir)
  if (pid === undefined || isAlive(pid)) return
  rmSync(join(dataDir, 'postmaster.pid'), { force: true })
  rmSync(join(socketDir, `.s.PGSQL.${SOCKET_PORT}.lock`), { force: true })
  rmSync(join(socketDir, `.s.PGSQL.${SOCKET_PORT}`), { force: true })
}

/** Stops the server of a directory, if one runs: by a fast shutdown, then by an immediate one. */
export async function stopPostmaster(dataDir: string): Promise<void> {
  const pid = postmasterPid(dataDir)
  if (pid === undefined || !isAlive(pid)) return
  for (const signal of ['SIGINT', 'SIGQUIT'] as const) {
    process.kill(pid, signal)
    // A suspended one gets the signal when it continues.
    process.kill(pid, 'SIGCONT')
    for (const end = performance.now() + STOP_DEADLINE_MS / 2; isAlive(pid) && performance.now() < end; )
      await new Promise((resolve) => setTimeout(resolve, STOP_POLL_MS))
    if (!isAlive(pid)) return
  }
}
