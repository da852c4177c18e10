import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, inject, it } from 'vitest'
import { Database, execute, migrate, query, startEmbeddedServer } from '../../../src/foundation/database/index.ts'
import { bootstrap } from '../../../src/platform/tenancy/index.ts'
import { runInProcess } from '../../support/command.ts'
import { createDatabase, dropDatabase } from '../../support/database.ts'
import { preparedDataDir } from '../../support/prepared-data-dir.ts'
import { freePort, removeDataDir, temporaryDataDir } from '../../support/product.ts'

const { serverUrl, template } = inject('databases')
const KEYS = `k1:${randomBytes(32).toString('base64')}`
const ROLE = `limited_${randomBytes(4).toString('hex')}`
const made: string[] = []
const unused = join(temporaryDataDir(), 'unused')

afterAll(async () => {
  for (const name of made) await dropDatabase(serverUrl, name)
  await onDatabase(serverUrl, (database) => execute(database.pool, `drop role if exists ${ROLE}`))
})

async function newDatabase(from: string): Promise<string> {
  const name = `patchbay_s_${randomBytes(6).toString('hex')}`
  made.push(name)
  return await createDatabase(serverUrl, name, from)
}

async function onDatabase<Result>(url: string, work: (database: Database) => Promise<Result>): Promise<Result> {
  await using database = new Database({ target: { kind: 'url', url }, poolMax: 1 })
  return await work(database)
}

/** Every table and migration of a database. */
async function contentsOf(url: string) {
  return await onDatabase(url, async ({ pool }) => {
    const tables = await query<{ name: string }>(
      pool,
      `select oid::regclass::text as name from pg_class
       where relkind in ('r', 'p') and relnamespace::regnamespace::text !~ '^(pg_|information_schema)' order by 1`,
    )
    const migrations = tables.filter(({ name }) => /(patchbay|knex)_migrations$/.test(name))
    return [tables, await Promise.all(migrations.map(({ name }) => query(pool, `select * from ${name}`)))]
  })
}

const onServer = async (url: string) => ({
  DATABASE_URL: url,
  PATCHBAY_ENCRYPTION_KEYS: KEYS,
  PATCHBAY_DATA_DIR: unused,
  PATCHBAY_PORT: String(await freePort()),
  PATCHBAY_LOG_LEVEL: 'silent',
})

/** What the layout before `patchbay_migrations` was. */
const FORMER_LAYOUT = `alter table patchbay_migrations rename to knex_migrations;
  alter table patchbay_migrations_lock rename to knex_migrations_lock;`
const NEWER = `insert into knex_migrations (name, batch, migration_time) values ('9999-future', 9, now());`
const FOREIGN = `create table knex_migrations (id serial primary key, name text, batch int, migration_time timestamptz);
  insert into knex_migrations (name) values ('20200101_users.js');`

interface Unusable {
  readonly what: string
  readonly from?: string
  readonly sql?: string
  readonly parameters?: string
  readonly says: RegExp
}

const UNUSABLE: readonly Unusable[] = [
  {
    what: 'was written by a newer version',
    from: template,
    sql: NEWER.replace('knex', 'patchbay'),
    says: /database was written by a newer version of Patchbay \(9999-future\): start that version, or restore/,
  },
  {
    what: 'was written by a newer version with the table of before',
    from: template,
    sql: FORMER_LAYOUT + NEWER,
    says: /newer version of Patchbay \(9999-future\)/,
  },
  {
    what: 'has tables of another program with the same names',
    sql: `${FOREIGN} create table environment (name text)`,
    says: /database has tables of another program \(relation "environment" already exists\): name a database/,
  },
  {
    what: 'has the tables in a schema that connections do not look into',
    from: template,
    sql: 'alter schema public rename to moved; create schema public',
    says: /tables of Patchbay in the schema moved, .*: rename it to .*search_path%3Dmoved/,
  },
  {
    what: 'does not let its role create tables',
    sql: `create role ${ROLE}; revoke create on schema public from public`,
    parameters: `role=${ROLE}`,
    says: new RegExp(
      `does not let the role ${ROLE} create tables in the schema public: GRANT CREATE ON SCHEMA public TO`,
    ),
  },
  {
    what: 'does not let its role read its tables',
    from: template,
    parameters: `role=${ROLE}`,
    says: /does not let its role change the tables \(permission denied for table patchbay_migrations\)/,
  },
  {
    what: 'takes no writes',
    parameters: 'default_transaction_read_only=on',
    says: /takes no writes: connect to the primary instead of a standby, or turn off default_transaction_read_only/,
  },
  {
    what: 'is in LATIN1',
    from: `template0 encoding 'LATIN1' locale 'C'`,
    says: /has the encoding LATIN1, which cannot store every text: .* ENCODING 'UTF8'/,
  },
  { what: 'is in SQL_ASCII', from: `template0 encoding 'SQL_ASCII' locale 'C'`, says: /the encoding SQL_ASCII/ },
]

describe('a start says in one line, and changes nothing, when its database', () => {
  it.each(UNUSABLE)('$what', async ({ from = 'template1', sql = '', parameters, says }) => {
    const url = await newDatabase(from)
    await onDatabase(url, ({ pool }) => execute(pool, sql))
    const before = await contentsOf(url)
    const options = parameters === undefined ? '' : `&options=${encodeURIComponent(`-c ${parameters}`)}`
    const { exitCode, stdout, stderr } = await runInProcess(['start'], await onServer(url + options))
    expect(stderr).toMatch(says)
    expect({ exitCode, stdout, lines: stderr.trimEnd().split('\n').length }).toEqual({
      exitCode: 1,
      stdout: '',
      lines: 1,
    })
    expect(await contentsOf(url)).toEqual(before)
    expect(existsSync(unused)).toBe(false)
  })

  it.each([
    ['postgres://u:SECRET#@h/d', /DATABASE_URL has a character .*%23/],
    ['postgres://u:SECRET@h1,h2/d', /DATABASE_URL names several hosts/],
    ['postgres://u:SECRET@h/d?sslmode=on', /DATABASE_URL has an unknown sslmode on/],
  ])('has the address %s', async (url, says) => {
    const { exitCode, stderr } = await runInProcess(['start'], await onServer(url))
    expect(stderr).toMatch(says)
    expect(stderr).not.toMatch(/SECRET|\n./)
    expect(exitCode).toBe(1)
  })
})

describe('an upgrade', () => {
  it('from the layout with knex_migrations keeps the data, and renames the table', async () => {
    const url = await newDatabase(template)
    const first = await onDatabase(url, (database) => bootstrap(database))
    await onDatabase(url, ({ pool }) => execute(pool, FORMER_LAYOUT))
    // One migration is missing, as in a database of an older version.
    const last = `delete from knex_migrations where name = '0030-event-bytes' returning name`
    await onDatabase(url, async ({ pool }) => expect(await query(pool, last)).toHaveLength(1))
    await onDatabase(url, ({ pool }) => execute(pool, 'alter table webhook drop column max_event_bytes'))
    const reports = await onDatabase(url, async (database) => [await migrate(database), await migrate(database)])
    expect(reports).toEqual([{ applied: ['0030-event-bytes'] }, { applied: [] }])
    await onDatabase(url, async ({ pool }) => {
      expect(await query(pool, 'select id from team')).toEqual([{ id: first?.teamId }])
      expect(await query(pool, `select to_regclass('knex_migrations') as former`)).toEqual([{ former: null }])
    })
  })

  it('leaves the knex_migrations of another program alone', async () => {
    const url = await newDatabase('template1')
    await onDatabase(url, ({ pool }) => execute(pool, FOREIGN))
    for (const round of [1, 2]) {
      expect((await runInProcess(['migrate'], await onServer(url))).exitCode, `${round}`).toBe(0)
      const names = await onDatabase(url, ({ pool }) => query(pool, 'select name from knex_migrations'))
      expect(names).toEqual([{ name: '20200101_users.js' }])
    }
  })
})

describe('a start says in one line when its data directory', () => {
  async function expectRejected(dataDir: string, says: RegExp): Promise<void> {
    const environment = { PATCHBAY_DATA_DIR: dataDir, PATCHBAY_PORT: String(await freePort()) }
    const { exitCode, stdout, stderr } = await runInProcess(['start'], { ...environment, PATCHBAY_LOG_LEVEL: 'silent' })
    expect(stderr).toMatch(says)
    expect({ exitCode, stdout, lines: stderr.trimEnd().split('\n').length }).toEqual({
      exitCode: 1,
      stdout: '',
      lines: 1,
    })
  }

  it('has lost its key, and writes no new one', async () => {
    const dataDir = preparedDataDir()
    const server = await startEmbeddedServer({ dataDir })
    const target = {
      kind: 'socket',
      host: server.host,
      port: server.port,
      user: server.user,
      database: 'postgres',
    } as const
    {
      await using database = new Database({ target, poolMax: 1 })
      await execute(
        database.pool,
        `with key as (insert into key_encryption_key (id) values ('local'))
         insert into data_key (id, owner_id, key_encryption_key_id, wrapped_key)
         values (gen_random_uuid(), gen_random_uuid(), 'local', '\\x00')`,
      )
    }
    await server.stop()
    const key = join(dataDir, 'encryption.key')
    rmSync(key)
    await expectRejected(dataDir, /\/encryption\.key is missing, and secrets in .* are encrypted under it: restore it/)
    expect(existsSync(key)).toBe(false)
    removeDataDir(dataDir)
  })

  it('is a copy of one that is in use', async () => {
    const [dataDir, copy] = [preparedDataDir(), temporaryDataDir()]
    const server = await startEmbeddedServer({ dataDir })
    execFileSync('cp', ['-a', `${dataDir}/.`, copy])
    await expectRejected(
      copy,
      /has a copy of the database in .*, made while it runs: .* Stop that one and copy it again/,
    )
    await server.stop()
    for (const each of [dataDir, copy]) removeDataDir(each)
  })
})
