import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { changeOwner } from '../../../../src/foundation/database/embedded-identity.ts'
import {
  chooseEmbeddedPlacement,
  findOrphanedDatabases,
} from '../../../../src/foundation/database/embedded-placement.ts'
import {
  Database,
  DataDirectoryLock,
  type EmbeddedServer,
  query,
  retireOrphanedDatabases,
  startEmbeddedServer,
} from '../../../../src/foundation/database/index.ts'
import { isAlive } from '../../../../src/foundation/database/postmaster.ts'
import { someCases } from '../../../support/case-count.ts'

/** A data directory that root's server can reach. */
function openDirectory(): string {
  const open = mkdtempSync(join(tmpdir(), 'patchbay-open-'))
  chmodSync(open, 0o711)
  onTestFinished(() => rmSync(open, { recursive: true, force: true }))
  return open
}

/** A data directory below one of mode 700, where root's server cannot live. */
function closedDirectory(): string {
  const closed = mkdtempSync(join(tmpdir(), 'patchbay-closed-'))
  onTestFinished(() => rmSync(closed, { recursive: true, force: true }))
  return join(closed, 'data')
}

async function start(dataDir: string): Promise<EmbeddedServer> {
  const server = await startEmbeddedServer({ dataDir, settings: ['fsync=off'] })
  onTestFinished(async () => {
    await server.stop()
    if (server.movedFrom !== undefined) rmSync(dirname(server.dataDir), { recursive: true, force: true })
  })
  return server
}

async function queryServer<Row>({ host, port, user }: EmbeddedServer, sql: string): Promise<Row[]> {
  await using database = new Database({ target: { kind: 'socket', host, port, user, database: 'postgres' } })
  return await query<Row>(database.pool, sql)
}

describe('the embedded server of a directory that others cannot enter', () => {
  const returns: Readonly<Record<string, () => Promise<void>>> = {
    async 'finds its data again after a stop, and after kill -9 of its parent is adopted'() {
      const dataDir = closedDirectory()
      const first = await start(dataDir)
      await queryServer(first, 'create table kept (id integer)')
      const adopted = await start(dataDir)
      expect([adopted.adopted, adopted.pid]).toEqual([true, first.pid])
      await first.stop()
      const second = await start(dataDir)
      expect([second.adopted, second.dataDir]).toEqual([false, first.dataDir])
      expect(await queryServer(second, 'select id from kept')).toEqual([])
    },

    async 'begins anew when the directory was removed, instead of meeting a database without its key'() {
      const dataDir = closedDirectory()
      const first = await start(dataDir)
      await queryServer(first, 'create table kept (id integer)')
      await first.stop()
      rmSync(dataDir, { recursive: true })
      const second = await start(dataDir)
      expect(await queryServer(second, `select to_regclass('kept') as kept`)).toEqual([{ kept: null }])
    },
  }
  it.each(someCases(Object.entries(returns), 1))('%s', async (_, expectSo) => {
    await expectSo()
  })
})

describe('the access to the embedded server', () => {
  const rulesOf = (server: EmbeddedServer) =>
    queryServer(server, 'select distinct type, auth_method as method, error from pg_hba_file_rules')
  const accountsOf = (server: EmbeddedServer) =>
    queryServer(server, 'select sys_name as account, pg_username as role, error from pg_ident_file_mappings')
  const PEER = [{ type: 'local', method: 'peer', error: null }]
  const SERVICE = [{ account: userInfo().username, role: 'patchbay', error: null }]
  const isRoot = process.getuid?.() === 0
  const accounts = () => readFileSync('/etc/passwd', 'utf8').split('\n')

  const accesses: Readonly<Record<string, () => Promise<void>>> = {
    async 'is that of the account which runs the service, under a uid that no account has'() {
      const server = await start(openDirectory())
      expect([await rulesOf(server), await accountsOf(server)]).toEqual([PEER, SERVICE])
      const { uid } = statSync(server.dataDir)
      expect(accounts().some((line) => line.split(':')[2] === String(uid))).toBe(!isRoot)
    },

    async 'becomes that with the next start of a directory that a shared account has, which keeps its data'() {
      const dataDir = openDirectory()
      const before = await start(dataDir)
      await queryServer(before, 'create table kept (id integer)')
      await before.stop()
      writeFileSync(join(before.dataDir, 'pg_hba.conf'), 'local all all trust\n')
      if (isRoot) changeOwner({ uid: 65_534, gid: 65_534 }, [dirname(before.dataDir)])
      const { uid: shared } = statSync(before.dataDir)
      const server = await start(dataDir)
      expect([await rulesOf(server), await accountsOf(server)]).toEqual([PEER, SERVICE])
      expect(await queryServer(server, 'select id from kept')).toEqual([])
      expect(statSync(server.dataDir).uid !== shared).toBe(isRoot)
      expect(statSync(dirname(server.dataDir)).uid).toBe(statSync(server.dataDir).uid)
    },
  }
  it.each(someCases(Object.entries(accesses), 1))('%s', async (_, expectSo) => {
    await expectSo()
  })
})

describe('a directory that stands where the server is to live', () => {
  it('is refused and left as it is when it is a symbolic link', async () => {
    const [dataDir, target] = [closedDirectory(), closedDirectory()]
    for (const dir of [dataDir, target]) mkdirSync(dir)
    const before = statSync(target)
    symlinkSync(target, join(dataDir, 'postgres'))
    await expect(startEmbeddedServer({ dataDir })).rejects.toThrow('is not a directory of this server')
    expect([statSync(target).uid, statSync(target).mode]).toEqual([before.uid, before.mode])
  })

  it('is refused when others may enter it', async () => {
    const dataDir = closedDirectory()
    mkdirSync(join(dataDir, 'postgres'), { recursive: true })
    chmodSync(join(dataDir, 'postgres'), 0o755)
    await expect(startEmbeddedServer({ dataDir })).rejects.toThrow('with mode 700')
  })
})

describe('a database outside of a data directory that is gone', () => {
  it('is listed, also while another one is in its place, and removed after a month', async () => {
    const dataDir = closedDirectory()
    mkdirSync(dataDir)
    const now = new Date('2026-01-01T00:00:00Z')
    const later = new Date('2026-02-01T00:00:00Z')
    const orphans = (at: Date) => findOrphanedDatabases(at).filter((each) => each.dataDir === dataDir)
    const first = chooseEmbeddedPlacement(dataDir)
    expect(orphans(now)).toEqual([])
    rmSync(dataDir, { recursive: true })
    const expected = first.movedFrom === undefined ? [] : [expect.objectContaining({ root: first.root, dataDir })]
    expect(orphans(now)).toEqual(expected)
    const second = chooseEmbeddedPlacement(dataDir)
    expect(orphans(later)).toEqual(expected)
    for (const { root, movedFrom } of [first, second])
      if (movedFrom !== undefined)
        for (const each of [root, `${root}.orphaned`]) rmSync(each, { recursive: true, force: true })
    expect(orphans(later)).toEqual([])
  })

  it('is stopped when it still runs, unless a client is connected, and removed after a month', async () => {
    const dataDir = closedDirectory()
    const server = await start(dataDir)
    if (server.movedFrom === undefined) return // only root's server lives elsewhere
    rmSync(dataDir, { recursive: true })
    const retire = async (at: string) =>
      (await retireOrphanedDatabases(new Date(at))).filter((each) => each.dataDir === dataDir)
    const { host, port, user } = server
    const connected = new Database({ target: { kind: 'socket', host, port, user, database: 'postgres' } })
    await query(connected.pool, 'select 1')
    expect(await retire('2026-01-01T00:00:00Z')).toMatchObject([{ isRemoved: false }])
    expect(isAlive(server.pid)).toBe(true)
    await connected[Symbol.asyncDispose]()
    expect(await retire('2026-01-02T00:00:00Z')).toMatchObject([{ isRemoved: false }])
    expect([isAlive(server.pid), existsSync(server.dataDir)]).toEqual([false, true])
    expect(await retire('2026-02-01T00:00:00Z')).toMatchObject([{ isRemoved: true }])
    expect([existsSync(dirname(server.dataDir)), await retire('2026-02-01T00:00:00Z')]).toEqual([false, []])
  })
})

it('a server whose socket was removed is stopped, and another one started on its data', async () => {
  const dataDir = closedDirectory()
  const first = await start(dataDir)
  await queryServer(first, 'create table kept (id integer)')
  rmSync(join(first.host, '.s.PGSQL.5432'))
  const second = await start(dataDir)
  expect(second.pid).not.toBe(first.pid)
  expect(await queryServer(second, 'select id from kept')).toEqual([])
})

it('what another container may run is not started while another process uses the directory', async () => {
  const dataDir = closedDirectory()
  const server = await start(dataDir)
  await server.stop()
  // As a container leaves it that is killed, or that runs where its socket is not seen.
  writeFileSync(join(server.dataDir, 'postmaster.pid'), '999999\n')
  writeFileSync(join(dirname(server.dataDir), 'container'), 'another\n')
  const own = await DataDirectoryLock.acquire(dataDir, true)
  const other = await DataDirectoryLock.acquire(dataDir, false)
  const isShared = () => own.isShared()
  await expect(startEmbeddedServer({ dataDir, isShared })).rejects.toThrow('another container or machine')
  expect(readFileSync(join(server.dataDir, 'postmaster.pid'), 'utf8')).toBe('999999\n')
  await other.release(async () => {})
  const again = await startEmbeddedServer({ dataDir, isShared, settings: ['fsync=off'] })
  await own.release(() => again.stop())
  expect(again.adopted).toBe(false)
})

it('a database that was outside of its directory and is gone is not begun anew', async () => {
  const dataDir = closedDirectory()
  const server = await start(dataDir)
  await server.stop()
  const isElsewhere = server.movedFrom !== undefined
  rmSync(dirname(server.dataDir), { recursive: true })
  const again = startEmbeddedServer({ dataDir, settings: ['fsync=off'] })
  // As an ordinary user the database is below the directory itself.
  if (isElsewhere) await expect(again).rejects.toThrow('is not there any more: restore it')
  else await (await again).stop()
})

it('the log of the server has no errors of statements, and is cut when a start finds it long', async () => {
  const server = await start(closedDirectory())
  const log = join(dirname(server.dataDir), 'postgres.log')
  await expect(queryServer(server, `select 'a value of a customer'::integer`)).rejects.toThrow('invalid input syntax')
  await server.stop()
  expect(readFileSync(log, 'utf8')).not.toContain('a value of a customer')
  writeFileSync(log, `${'x'.repeat(9 * 1024 * 1024)}end`)
  chmodSync(log, 0o600)
  const again = await start(dirname(server.movedFrom ?? dirname(server.dataDir)))
  expect(again.dataDir).toBe(server.dataDir)
  expect(statSync(log).size).toBeLessThan(10_000)
  expect(readFileSync(`${log}.1`, 'utf8')).toMatch(/x{1000}end$/)
})
