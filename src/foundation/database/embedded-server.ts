import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { driverConfig } from './connection-address.ts'
import {
  changeOwner,
  initdbIdentity,
  isShared,
  SUPERUSER,
  takeOwnIdentity,
  writeAccessRules,
} from './embedded-identity.ts'
import {
  chooseEmbeddedPlacement,
  type EmbeddedPlacement,
  ensureExecutableBinaries,
  findOrphanedDatabases,
  findPostgresPackage,
  type OrphanedDatabase,
} from './embedded-placement.ts'
import {
  CONTAINER_FILE,
  clearStaleLocks,
  containerIdentity,
  copiedFrom,
  hasLivePostmaster,
  hasLostSocket,
  isAlive,
  isOfOtherContainer,
  postmasterPid,
  SOCKET_PORT,
  stopPostmaster,
} from './postmaster.ts'

const START_DEADLINE_MS = 30_000
const LOG_TAIL_CHARACTERS = 8_192
/** Size at which a start moves the end of the server's log to `postgres.log.1`, and empties it. */
const LOG_BYTES_MAX = 8 * 1024 * 1024
const LOG_KEPT_BYTES = 1024 * 1024

/** A running embedded PostgreSQL, shared by the processes of one data directory. */
export interface EmbeddedServer {
  /** Unix socket directory, the `host` of a connection. */
  readonly host: string
  readonly port: number
  readonly user: string
  readonly dataDir: string
  readonly pid: number
  /** True when the server was already running: left over from a killed parent, or started by another process. */
  readonly adopted: boolean
  /** The requested directory, when the server's files had to be elsewhere. */
  readonly movedFrom: string | undefined
  /** Fast shutdown; resolves when the process is gone. */
  stop(): Promise<void>
}

/** Where and with which settings the server runs. */
export interface EmbeddedServerOptions {
  /** The product's data directory; the server's files are in `postgres/` below it, see `chooseEmbeddedPlacement`. */
  readonly dataDir: string
  /** Whether another process uses the data directory. Default: none does. */
  readonly isShared?: () => Promise<boolean>
  /** Extra `name=value` settings. Durable settings stay on unless a test turns them off here. */
  readonly settings?: readonly string[]
}

/**
 * Starts the embedded PostgreSQL of a data directory, or adopts the one that is already running there.
 *
 * Adoption is tried first: after kill -9 of the whole parent the server keeps running and is usable. Of two simultaneous
 * starts PostgreSQL's own lock file picks one, and the other adopts its server. The server listens on a
 * Unix socket below a directory of mode 700 and never on TCP, and accepts the account that runs the service alone.
 *
 * @throws Error when there are no binaries for the platform, the directory is a copy of one whose server runs, or the server exits
 * during start (names its log)
 */
export async function startEmbeddedServer(options: EmbeddedServerOptions): Promise<EmbeddedServer> {
  const found = chooseEmbeddedPlacement(options.dataDir)
  boundLog(found.root)
  const original = copiedFrom(found.dataDir)
  const isNoneStarting = () => original !== undefined || !hasLivePostmaster(found) || hasLostSocket(found)
  const running = await waitForServer(found.socketDir, START_DEADLINE_MS, isNoneStarting)
  if (running) return toHandle(found, true)
  if (original !== undefined) throw new Error(copyMessage(found.dataDir, original))
  if (hasLostSocket(found)) await stopPostmaster(found.dataDir)
  const placement = withOwnIdentity(found)
  const copies = join(placement.root, '..')
  const bin = join(ensureExecutableBinaries(findPostgresPackage(), placement.identity, copies), 'bin')
  initialiseCluster(bin, placement)
  if (isOfOtherContainer(placement) && (await options.isShared?.()) === true)
    throw new Error(
      'has a database that another container or machine runs, which uses the directory as well: stop that one first, or set DATABASE_URL for both',
    )
  clearStaleLocks(placement.dataDir, placement.socketDir)
  writeAccessRules(placement.dataDir, placement.identity)
  writeFileSync(join(placement.root, CONTAINER_FILE), containerIdentity())
  const child = launch(bin, placement, options.settings ?? [])
  // Of two simultaneous starts one server exits, while the other is about to answer on the same socket.
  const isGone = () => child.exitCode !== null && !hasLivePostmaster(placement)
  const answered = await waitForServer(placement.socketDir, START_DEADLINE_MS, isGone).catch((error: unknown) => {
    child.kill('SIGQUIT')
    throw error
  })
  if (!answered) child.kill('SIGQUIT')
  if (!answered) throw new Error(`the embedded PostgreSQL did not start${lastFatalLine(placement.root)}`)
  return toHandle(placement, postmasterPid(placement.dataDir) !== child.pid)
}

/**
 * A server of an earlier version ran under an account that other services share: its files get a uid of their own. So do those of
 * a copy that root made.
 */
function withOwnIdentity(placement: EmbeddedPlacement): EmbeddedPlacement {
  const { identity, owned, dataDir } = placement
  if (isShared(identity)) return { ...placement, identity: takeOwnIdentity(owned) }
  const owner = lstatSync(dataDir, { throwIfNoEntry: false })?.uid
  if (owner !== undefined && owner !== identity.uid) changeOwner(identity, owned)
  return placement
}

function copyMessage(dataDir: string, original: string): string {
  return `has a copy of the database in ${original}, made while it runs: such a copy is not consistent. Stop that one and copy it again, or restore a pg_dump of it; where the copy is a snapshot of the whole disk, remove ${join(dataDir, 'postmaster.pid')}`
}

/** Creates the cluster in a temporary directory and renames it, so that a crash or a second start leaves no partial cluster. */
function initialiseCluster(bin: string, { identity, root, dataDir }: EmbeddedPlacement): void {
  if (existsSync(join(dataDir, 'PG_VERSION'))) return
  const initdb = initdbIdentity(identity)
  const beside = join(root, '..', `postgres.${process.pid}`)
  const flags = ['-D', beside, '-U', SUPERUSER, '-A', 'peer', '--no-locale', '-E', 'UTF8', '--no-instructions']
  try {
    mkdirSync(beside, { mode: 0o700 })
    changeOwner(initdb, [beside])
    execFileSync(join(bin, 'initdb'), flags, { ...initdb, env: serverEnv(), stdio: ['ignore', 'ignore', 'pipe'] })
    changeOwner(identity, [beside])
    renameSync(beside, dataDir)
  } catch (cause) {
    rmSync(beside, { recursive: true, force: true })
    if (existsSync(join(dataDir, 'PG_VERSION'))) return // the other start's cluster is in place
    const detail = cause instanceof Error && 'stderr' in cause ? String(cause.stderr).trim() : ''
    throw new Error(
      `initdb failed: ${detail}. An account without a passwd entry cannot run it: set DATABASE_URL instead`,
      { cause },
    )
  }
}

function launch(
  bin: string,
  { identity, root, dataDir, socketDir }: EmbeddedPlacement,
  settings: readonly string[],
): ChildProcess {
  const { O_APPEND, O_CREAT, O_WRONLY, O_NOFOLLOW } = constants
  const log = openSync(join(root, 'postgres.log'), O_APPEND | O_CREAT | O_WRONLY | O_NOFOLLOW, 0o600)
  // A list of directories, in which a quoted one may contain commas.
  const socketDirs = `"${socketDir.replaceAll('"', '""')}"`
  const args = ['-D', dataDir, '-p', String(SOCKET_PORT), '-k', socketDirs, '-c', 'listen_addresses=']
  const tuned = [
    'max_connections=200',
    'shared_buffers=256MB',
    'jit=off',
    'max_wal_size=2GB',
    'checkpoint_timeout=15min',
    // Queue and leases leave thousands of dead rows a second under load, which every claim skips until they are vacuumed.
    'autovacuum_naptime=10s',
    // Errors of statements are their senders' to log: rejected values would fill the disk a second time.
    'log_min_messages=log',
    'log_checkpoints=off',
    ...settings,
  ]
  // Detached: Ctrl-C reaches the terminal's process group, and the database must outlive our own drain.
  const child = spawn(join(bin, 'postgres'), [...args, ...tuned.flatMap((setting) => ['-c', setting])], {
    ...identity,
    env: serverEnv(),
    cwd: root,
    detached: true,
    stdio: ['ignore', log, log],
  })
  child.unref()
  return child
}

/**
 * Moves the end of a long log to another file and empties it: the server appends. Symbolic links, which the server's user could
 * place there, are not followed.
 */
function boundLog(root: string): void {
  const file = join(root, 'postgres.log')
  if (lstatSync(file, { throwIfNoEntry: false })?.isFile() !== true) return
  const { O_RDWR, O_CREAT, O_EXCL, O_NOFOLLOW } = constants
  const log = openSync(file, O_RDWR | O_NOFOLLOW)
  try {
    const { size } = fstatSync(log)
    if (size <= LOG_BYTES_MAX) return
    const end = Buffer.alloc(LOG_KEPT_BYTES)
    readSync(log, end, 0, end.length, size - end.length)
    rmSync(`${file}.1`, { force: true })
    const kept = openSync(`${file}.1`, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
    writeSync(kept, end)
    closeSync(kept)
    ftruncateSync(log)
  } finally {
    closeSync(log)
  }
}

/** What became of a database that no data directory uses. */
export interface RetiredDatabase extends OrphanedDatabase {
  readonly isRemoved: boolean
}

/**
 * Stops the servers of databases that no data directory uses, unless a client is connected, and removes those that have been
 * unused for a month: a server whose data directory was removed would run for ever.
 */
export async function retireOrphanedDatabases(now: Date): Promise<readonly RetiredDatabase[]> {
  const retired: RetiredDatabase[] = []
  for (const orphan of findOrphanedDatabases(now)) {
    const dataDir = join(orphan.root, 'data')
    if (!(await hasClients(orphan.socketDir))) await stopPostmaster(dataDir)
    const pid = postmasterPid(dataDir)
    const isRemoved = orphan.expiresAt <= now && (pid === undefined || !isAlive(pid))
    if (isRemoved)
      for (const each of [orphan.root, orphan.socketDir, orphan.noted]) rmSync(each, { recursive: true, force: true })
    retired.push({ ...orphan, isRemoved })
  }
  return retired
}

/** Also true of a server that is just starting or cannot be asked. */
async function hasClients(socketDir: string): Promise<boolean> {
  const client = clientOf(socketDir)
  try {
    await client.connect()
    const { rows } = await client.query(
      `select 1 from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid() limit 1`,
    )
    return rows.length > 0
  } catch (error) {
    return !isAbsent(error)
  } finally {
    await client.end().catch(() => undefined)
  }
}

/** What the server's log says about its end, and where the log is. */
function lastFatalLine(root: string): string {
  const file = join(root, 'postgres.log')
  const text = existsSync(file) ? readFileSync(file, 'utf8').slice(-LOG_TAIL_CHARACTERS) : ''
  const last = [...text.matchAll(/^.*(?:FATAL|PANIC): +(.*)$/gm)].at(-1)?.[1]
  return `${last === undefined ? '' : `: ${last}`}, see ${file}`
}

function toHandle(placement: EmbeddedPlacement, adopted: boolean): EmbeddedServer {
  const pid = postmasterPid(placement.dataDir) ?? 0
  const { socketDir: host, dataDir, movedFrom } = placement
  return {
    host,
    port: SOCKET_PORT,
    user: SUPERUSER,
    dataDir,
    pid,
    adopted,
    movedFrom,
    stop: () => stopPostmaster(dataDir),
  }
}

/**
 * Immediate shutdown of the server of a data directory, if one runs: for a process that ends now and cannot wait. The server kills its
 * own processes that do not end within 5 s, and its next start recovers.
 */
export function quitEmbeddedServer(dataDir: string): void {
  const pid = postmasterPid(chooseEmbeddedPlacement(dataDir).dataDir)
  if (pid === undefined || !isAlive(pid)) return
  process.kill(pid, 'SIGQUIT')
  process.kill(pid, 'SIGCONT')
}

/** The server inherits none of this process's environment, which could hold keys and tokens. */
function serverEnv(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' }
}

const POLL_MS = 20
/** SQLSTATE of a server that is starting up or shutting down (57P01 to 57P03). */
const STARTING_STATES = new Set(['57P03', '57P01', '57P02'])

/**
 * Waits until a server accepts connections on the socket.
 *
 * @param isGone true when no server is starting, so that waiting ends early
 * @returns false when none accepts connections within `deadlineMs`, or `isGone`
 */
async function waitForServer(socketDir: string, deadlineMs: number, isGone: () => boolean): Promise<boolean> {
  for (const end = performance.now() + deadlineMs; performance.now() < end; ) {
    const state = await probe(socketDir)
    if (state === 'ready') return true
    if (state === 'absent' && isGone()) return false
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  return false
}

async function probe(socketDir: string): Promise<'ready' | 'absent' | 'starting'> {
  const client = clientOf(socketDir)
  try {
    await client.connect()
    await client.end()
    return 'ready'
  } catch (error) {
    if (isAbsent(error)) return 'absent'
    const code = codeOf(error)
    if (STARTING_STATES.has(code) || code === 'ECONNRESET') return 'starting'
    throw error
  }
}

function clientOf(socketDir: string): pg.Client {
  return new pg.Client(
    driverConfig({ kind: 'socket', host: socketDir, port: SOCKET_PORT, user: SUPERUSER, database: 'postgres' }),
  )
}

/** Whether nothing listens on the socket. */
function isAbsent(error: unknown): boolean {
  return ['ENOENT', 'ECONNREFUSED'].includes(codeOf(error))
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
