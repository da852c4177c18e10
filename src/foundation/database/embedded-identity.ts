import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { lstatSync, readFileSync } from 'node:fs'
import { userInfo } from 'node:os'

/** The uid and gid a child runs under; empty when this process is not root. PostgreSQL does not run as root. */
export interface ChildIdentity {
  readonly uid?: number
  readonly gid?: number
}

/** The role of the service; the only one. */
export const SUPERUSER = 'patchbay'

/**
 * Uids that no registry of systemd or of a distribution gives to accounts (systemd, "Users, Groups, UIDs and GIDs"): also
 * below 65536, as many containers have no more.
 */
const UID_FIRST = 60_578
const UID_LAST = 61_183
const ROOT_ID = 0
/** Other services share this account: it owns no server's files for longer than it takes to make them. */
const SHARED: ChildIdentity = { uid: 65_534, gid: 65_534 }

/**
 * The identity of the server whose directory this is: empty unless this process is root, else the owner of an existing
 * directory. A new one gets a uid of its own that no account has, derived from its path, so that no other service of the
 * machine can read the files or connect.
 */
export function serverIdentity(directory: string): ChildIdentity {
  if (process.getuid?.() !== ROOT_ID) return {}
  const owner = lstatSync(directory, { throwIfNoEntry: false })?.uid
  const isServer = owner !== undefined && ((owner >= UID_FIRST && owner <= UID_LAST) || owner === SHARED.uid)
  return isServer ? { uid: owner, gid: owner } : ownIdentity(directory)
}

/** Whether other services may run under the identity, as servers of earlier versions did. */
export function isShared({ uid }: ChildIdentity): boolean {
  return uid === SHARED.uid
}

/** A uid that no account has, for the server of a directory. */
function ownIdentity(directory: string): ChildIdentity {
  const taken = accountIds()
  const count = UID_LAST - UID_FIRST + 1
  const start = createHash('sha256').update(directory).digest().readUInt32BE() % count
  for (let step = 0; step < count; step++) {
    const uid = UID_FIRST + ((start + step) % count)
    if (!taken.has(uid)) return { uid, gid: uid }
  }
  throw new Error(`all uids from ${UID_FIRST} to ${UID_LAST} have accounts: set DATABASE_URL`)
}

function accountIds(): ReadonlySet<number> {
  try {
    return new Set(
      readFileSync('/etc/passwd', 'utf8')
        .split('\n')
        .map((line) => Number(line.split(':')[2])),
    )
  } catch {
    return new Set() // no file of accounts
  }
}

/**
 * Gives the directories of a stopped server to a uid of its own.
 *
 * @param all the first one's owner tells the server's identity, and is changed last: a start that dies here is repeated
 */
export function takeOwnIdentity(all: readonly string[]): ChildIdentity {
  const identity = ownIdentity(all[0] ?? '')
  changeOwner(identity, all.toReversed())
  return identity
}

/** Never follows a symbolic link, which the owner of a directory could place in it. */
export function changeOwner({ uid, gid }: ChildIdentity, directories: readonly string[]): void {
  if (uid === undefined) return
  execFileSync('chown', ['-R', '-h', `${uid}:${gid}`, '--', ...directories], { stdio: ['ignore', 'ignore', 'pipe'] })
}

/**
 * The identity under which `initdb` runs, which needs an account: that of the server, or for root the shared one. The cluster is
 * given to the server before it first starts.
 */
export function initdbIdentity({ uid }: ChildIdentity): ChildIdentity {
  return uid === undefined ? {} : SHARED
}

/**
 * Writes the rules of who may connect, as the server's own user: over the socket, by peer authentication, the account that runs the
 * service and no other.
 *
 * @throws Error when this process has no account
 */
export function writeAccessRules(dataDir: string, identity: ChildIdentity): void {
  const rules = `# Written by each start.\nlocal all all peer map=${SUPERUSER}\n`
  const accounts = `# Written by each start.\n${SUPERUSER} "${accountName()}" ${SUPERUSER}\n`
  for (const [name, text] of Object.entries({ 'pg_hba.conf': rules, 'pg_ident.conf': accounts })) {
    const script = 'umask 077; cat > "$0.new" && mv -f "$0.new" "$0"'
    const { status, stderr } = spawnSync('/bin/sh', ['-c', script, `${dataDir}/${name}`], { ...identity, input: text })
    if (status !== 0) throw new Error(`${dataDir}/${name} cannot be written: ${stderr}`)
  }
}

function accountName(): string {
  try {
    return userInfo().username
  } catch (cause) {
    const message = `uid ${process.getuid?.()} has no account (no passwd entry), by which the embedded PostgreSQL knows the service: set DATABASE_URL instead`
    throw new Error(message, { cause })
  }
}
