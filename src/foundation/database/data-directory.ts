import { chmodSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'

/** The lock file, and beside it the process id of the `start` that holds the directory, for messages only. */
const LOCK_FILE = 'lock'
const PID_FILE = 'start.pid'
/** The last process of a directory stops its PostgreSQL, which takes 20 s at most; the next one waits for that. */
const WAIT_MS = 30_000
const POLL_MS = 50
const SQLITE_BUSY = 5

/** A data directory that cannot be used. The message is one line and says what to do, without naming the setting. */
class DataDirectoryError extends Error {}

/**
 * A file lock of the operating system on a data directory, shared or exclusive.
 *
 * Node has no `flock`; SQLite takes the same kind of lock (fcntl) on Linux and macOS, and its three levels are exactly
 * what is needed. SHARED: a process uses the directory. RESERVED, one at a time beside any number of SHARED: it is the
 * directory's `patchbay start`. EXCLUSIVE: no other process uses it, so that PostgreSQL may be stopped. The kernel releases
 * the locks of a process that dies, so no lock is ever stale. Nothing is ever written to the file.
 */
export class DataDirectoryLock {
  readonly #file: DatabaseSync
  readonly #pidFile: string | undefined

  private constructor(file: DatabaseSync, pidFile: string | undefined) {
    this.#file = file
    this.#pidFile = pidFile
  }

  /**
   * Creates the directory if it does not exist, and locks it; waits for a process that is just stopping its PostgreSQL.
   *
   * @param isStart whether to reject a directory that another `start` has locked
   * @throws DataDirectoryError
   */
  static async acquire(dataDir: string, isStart: boolean): Promise<DataDirectoryLock> {
    createDataDirectory(dataDir)
    const file = openLockFile(join(dataDir, LOCK_FILE))
    try {
      await lock(file, isStart ? 'BEGIN IMMEDIATE' : BEGIN_SHARED, () => {
        // SHARED is granted beside another `start`, but not beside a process that stops the server.
        if (!isStart || !tryLock(file, BEGIN_SHARED)) return
        throw new DataDirectoryError(
          `${dataDir} is in use by another patchbay start${holderText(dataDir)}: stop it first`,
        )
      })
    } catch (error) {
      file.close()
      throw error
    }
    const pidFile = isStart ? join(dataDir, PID_FILE) : undefined
    if (pidFile !== undefined) writeFileSync(pidFile, `${process.pid}\n`)
    return new DataDirectoryLock(file, pidFile)
  }

  /** Whether another process uses the directory as well. Gives the lock up for a moment. */
  async isShared(): Promise<boolean> {
    this.#file.exec('ROLLBACK')
    const isAlone = tryLock(this.#file, 'BEGIN EXCLUSIVE')
    if (isAlone) this.#file.exec('ROLLBACK')
    await lock(this.#file, this.#pidFile === undefined ? BEGIN_SHARED : 'BEGIN IMMEDIATE', () => {})
    return !isAlone
  }

  /** Releases the lock; when no other process uses the directory, `stop` runs before another can lock it. */
  async release(stop: () => Promise<void>): Promise<void> {
    try {
      if (this.#pidFile !== undefined) rmSync(this.#pidFile, { force: true })
      this.#file.exec('ROLLBACK')
      if (tryLock(this.#file, 'BEGIN EXCLUSIVE')) await stop()
    } finally {
      this.#file.close()
    }
  }
}

/** Begins a read transaction, whose SHARED lock lasts until it ends. */
const BEGIN_SHARED = 'BEGIN; SELECT 1 FROM sqlite_schema'

async function lock(file: DatabaseSync, statement: string, onBusy: () => void): Promise<void> {
  for (const end = performance.now() + WAIT_MS; !tryLock(file, statement); ) {
    onBusy()
    if (performance.now() > end)
      throw new DataDirectoryError('is locked by a process that does not end: look for one that uses it')
    await delay(POLL_MS)
  }
}

function tryLock(file: DatabaseSync, statement: string): boolean {
  try {
    file.exec(statement)
    return true
  } catch (error) {
    if (!(error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY)) throw error
    if (file.isTransaction) file.exec('ROLLBACK')
    return false
  }
}

function openLockFile(path: string): DatabaseSync {
  try {
    // Two last processes that release at once each request the exclusive lock: one of them has to get it.
    const file = new DatabaseSync(path, { timeout: POLL_MS })
    chmodSync(path, 0o600)
    return file
  } catch (error) {
    throw new DataDirectoryError(`${dirname(path)} cannot be written to: ${describeFileError(error)}`)
  }
}

function holderText(dataDir: string): string {
  try {
    return ` (process ${Number.parseInt(readFileSync(join(dataDir, PID_FILE), 'utf8'), 10)})`
  } catch {
    return ''
  }
}

/**
 * Like `mkdir -p` with mode 711: the server's uid may traverse it to its own directory, but neither list nor read the
 * other entries. Not Node's own recursive one, which never returns below `/proc`.
 *
 * @throws DataDirectoryError
 */
export function createDataDirectory(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found?.isDirectory()) return
  if (found !== undefined) throw new DataDirectoryError(`${path} is a file: name a directory`)
  if (dirname(path) !== path) createDataDirectory(dirname(path))
  try {
    mkdirSync(path)
    // Whatever the umask is.
    chmodSync(path, 0o711)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return
    throw new DataDirectoryError(`${path} cannot be made: ${describeFileError(error)}`)
  }
}

function describeFileError(error: unknown): string {
  return error instanceof Error ? error.message.replace(/, \w+ '.*'$/, '') : String(error)
}
