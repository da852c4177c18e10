import { randomUUID } from 'node:crypto'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { runCommand } from '../../../../src/cli/commands/run-command.ts'
import { openStore } from '../../../../src/cli/daemon/open-store.ts'
import { findPostgresProblem, type StoreProblem } from '../../../../src/cli/daemon/store-problem.ts'
import { testDatabase } from '../../../support/database.ts'
import { FaultyPostgres } from '../../../support/faulty-postgres.ts'

const { url } = await testDatabase()
const database = new pg.Pool({ connectionString: url, max: 2 })
const directory = mkdtempSync(join(tmpdir(), 'patchbay-store-'))
/** The server is shared with other test files, and roles are of the server. */
const ROLE = `store_${randomUUID().slice(0, 8)}`
const withSetting = (setting: string) => `${url}&options=${encodeURIComponent(`-c ${setting}`)}`
const urlAs = (role: string) => withSetting(`role=${role}`)

beforeAll(async () => {
  await database.query(`create role ${ROLE}; create schema foreign_tables;
    create schema granted authorization ${ROLE}`)
})

afterAll(async () => {
  await database.query(`drop schema granted cascade; drop role ${ROLE}`)
  await database.end()
  chmodSync(directory, 0o700)
  rmSync(directory, { recursive: true })
})

function opened(address: string, schema = 'crm') {
  const store = openStore({ address, schema, writers: 2 })
  if (store === undefined) throw new Error(`no store at ${address}`)
  onTestFinished(async () => await store[Symbol.asyncDispose]())
  return store
}

async function writeOne(store: ReturnType<typeof opened>, resource: string, key = '1'): Promise<void> {
  const [runId, integratedAccountId, leaseId] = [randomUUID(), randomUUID(), randomUUID()]
  await using run = await store.open({ runId, integratedAccountId, leaseId, attempt: 1, leasedUntil: new Date() })
  await run.write({ resource, sequence: 1, rows: [{ key, record: { id: key } }] })
}

/** The problem with which work ends. */
async function problemOf(work: Promise<void>): Promise<StoreProblem> {
  const error: unknown = await work.then(
    () => new Error('no problem'),
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof Error && 'problem' in error)) throw error
  return error.problem as StoreProblem
}

/** A server that answers the first bytes of each connection with these. */
async function answering(bytes: Buffer): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.write(bytes))
    onTestFinished(() => void socket.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const address = server.address()
  return `127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
}

/** A fatal error as PostgreSQL and connection poolers send it before a session begins. */
function fatal(code: string, message: string): Buffer {
  const body = Buffer.from(`SFATAL\0C${code}\0M${message}\0\0`)
  const head = Buffer.alloc(5)
  head.write('E')
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

describe('the check of a store', () => {
  const addresses: readonly (Omit<StoreProblem, 'message'> & {
    readonly what: string
    readonly address: () => string | Promise<string>
    readonly schema?: string
    readonly says: string
  })[] = [
    {
      what: 'a missing database',
      address: () => url.replace(/\/[^/?@]*\?/, '/missing?'),
      effect: 'failed',
      reason: 'STORE_NOT_FOUND',
      says: 'database "missing" does not exist (3D000): check the database',
    },
    {
      what: 'a user of another name than that of the process',
      address: () => url.replace(/^(\w+:\/\/)[^@]*@/, `$1${ROLE}@`),
      effect: 'failed',
      reason: 'STORE_ACCESS_DENIED',
      says: '(28000): check user and password',
    },
    {
      what: 'a user without CREATE on the database',
      address: () => urlAs(ROLE),
      effect: 'failed',
      reason: 'STORE_ACCESS_DENIED',
      says: 'permission denied for database',
    },
    {
      what: 'a user without rights on the schema',
      address: () => urlAs(ROLE),
      schema: 'foreign_tables',
      effect: 'failed',
      reason: 'STORE_ACCESS_DENIED',
      says: 'permission denied for schema foreign_tables (42501): grant its user CREATE on the database, or USAGE and CREATE on the schema',
    },
    {
      what: 'a database that takes no writes',
      address: () => withSetting('default_transaction_read_only=on'),
      effect: 'retry',
      reason: 'STORE_READ_ONLY',
      says: 'read-only transaction (25006): use the address of the primary',
    },
    {
      what: 'a refused connection',
      address: () => 'postgres://user@127.0.0.1:1/db',
      effect: 'unavailable',
      reason: 'STORE_UNAVAILABLE',
      says: 'connect ECONNREFUSED 127.0.0.1:1: check that it runs',
    },
    {
      what: 'an unknown host',
      address: () => 'postgres://user@store.invalid/db',
      effect: 'unavailable',
      reason: 'STORE_UNAVAILABLE',
      says: 'store.invalid: check that it runs, and host and port',
    },
    {
      what: 'TLS that the server does not have',
      address: async () => `postgres://user@${await answering(Buffer.from('N'))}/db?sslmode=require`,
      effect: 'failed',
      reason: 'STORE_TLS_FAILED',
      says: 'does not support SSL connections: add ?sslmode=require to its address where it demands TLS, remove it',
    },
    {
      what: 'a server that demands TLS',
      address: async () => {
        const answer = 'no pg_hba.conf entry for host "10.0.0.1", user "user", database "db", no encryption'
        return `postgres://user@${await answering(fatal('28000', answer))}/db`
      },
      effect: 'failed',
      reason: 'STORE_TLS_FAILED',
      says: 'no encryption (28000): add ?sslmode=require',
    },
    {
      what: 'a wrong password',
      address: async () =>
        `postgres://user:x@${await answering(fatal('28P01', 'password authentication failed for user "user"'))}/db`,
      effect: 'failed',
      reason: 'STORE_ACCESS_DENIED',
      says: 'password authentication failed for user "user" (28P01): check user and password',
    },
    {
      what: 'a pooler that has no such user',
      address: async () => `postgres://user@${await answering(fatal('XX000', 'Tenant or user not found'))}/db`,
      effect: 'failed',
      reason: 'STORE_ACCESS_DENIED',
      says: 'Tenant or user not found',
    },
    {
      what: 'a pooler without a free connection',
      address: async () => `postgres://user@${await answering(fatal('08P01', 'no more connections allowed'))}/db`,
      effect: 'unavailable',
      reason: 'STORE_OVERLOADED',
      says: 'lower --capacity',
    },
    {
      what: 'a server that starts',
      address: async () =>
        `postgres://user@${await answering(fatal('57P03', 'the database system is starting up'))}/db`,
      effect: 'unavailable',
      reason: 'STORE_UNAVAILABLE',
      says: 'starting up (57P03)',
    },
    {
      what: 'a password with a sign that an address cannot have',
      address: () => 'postgres://user:a#b@127.0.0.1/db',
      effect: 'failed',
      reason: 'STORE_ADDRESS_INVALID',
      says: 'write special characters of a password as %23',
    },
    {
      what: 'a directory below a file',
      address: () => {
        writeFileSync(join(directory, 'file'), '')
        return `ndjson:${join(directory, 'file', 'records')}`
      },
      effect: 'failed',
      reason: 'STORE_NOT_FOUND',
      says: 'name a directory, or one that can be created',
    },
  ]
  it.each(addresses)('says what is wrong and what to do: $what', async ({ address, schema, effect, reason, says }) => {
    const problem = await problemOf(opened(await address(), schema).check())
    expect(problem).toEqual({ effect, reason, message: expect.stringContaining(says) })
    expect(problem.message).not.toContain('\n')
  })

  it('makes what runs need, and takes what is there for a user that may use it', async () => {
    await opened(url, 'checked').check()
    const { rows } = await database.query(`select to_regclass('checked.patchbay_run_holder') is not null as found`)
    expect(rows).toEqual([{ found: true }])
    await opened(urlAs(ROLE), 'granted').check()
  })

  it('ends a daemon with one line, before it registers', async () => {
    const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
    onTestFinished(() => written.mockRestore())
    const args = ['--url', 'http://127.0.0.1:1', '--group', 'g', '--token', 't', '--store', urlAs(ROLE)]
    expect(await runCommand(['daemon', ...args, '--schema', 'not_mine'], {})).toBe(1)
    const lines = written.mock.calls.join('').trimEnd().split('\n')
    expect(lines).toEqual([
      expect.stringMatching(
        /^patchbay: the store does not let the daemon do this: permission denied for database \S+ \(42501\): grant/,
      ),
    ])
  })
})

describe('a page that the store does not take', () => {
  it.each([
    { what: 'a table of other columns', made: 'create table foreign_tables.contacts (id integer)' },
    { what: 'a view', made: 'create view foreign_tables.contacts as select 1 as _id' },
    {
      what: 'a table without the key',
      made: `create table foreign_tables.contacts (integrated_account_id uuid, _id text, record jsonb, run_id uuid,
        first_seen_at timestamptz, last_seen_at timestamptz)`,
    },
    {
      what: 'an index of the name',
      made: 'create table foreign_tables.t (id int); create index contacts on foreign_tables.t (id)',
    },
    {
      what: 'a column more that must be given',
      made: `create table foreign_tables.contacts (integrated_account_id uuid, _id text, record jsonb, run_id uuid,
        first_seen_at timestamptz, last_seen_at timestamptz, owner text not null, primary key (integrated_account_id, _id))`,
    },
  ])('fails its run when something else has the name of the table: $what', async ({ made }) => {
    await database.query('drop schema if exists foreign_tables cascade; create schema foreign_tables')
    await database.query(made)
    expect(await problemOf(writeOne(opened(url, 'foreign_tables'), 'contacts'))).toEqual({
      effect: 'failed',
      reason: 'STORE_TABLE_CONFLICT',
      message: expect.stringMatching(/contacts|_id|ON CONFLICT.*: rename or drop it, or name another schema/),
    })
  })

  it('fails its run when an id is longer than a key may be', async () => {
    const key = Array.from({ length: 300 }, () => randomUUID()).join('')
    expect(await problemOf(writeOne(opened(url, 'long'), 'contacts', key))).toMatchObject({
      effect: 'failed',
      reason: 'STORE_RECORD_REJECTED',
    })
  })

  it.each([
    { sqlState: '53100', effect: 'unavailable', reason: 'STORE_DISK_FULL' },
    { sqlState: '53200', effect: 'unavailable', reason: 'STORE_OVERLOADED' },
    { sqlState: '57P01', effect: 'unavailable', reason: 'STORE_UNAVAILABLE' },
    { sqlState: '40P01', effect: 'unavailable', reason: 'STORE_BUSY' },
    { sqlState: '55P03', effect: 'unavailable', reason: 'STORE_BUSY' },
    { sqlState: '28P01', effect: 'failed', reason: 'STORE_ACCESS_DENIED' },
    { sqlState: '42501', effect: 'failed', reason: 'STORE_ACCESS_DENIED' },
    { sqlState: '22P05', effect: 'failed', reason: 'STORE_RECORD_REJECTED' },
    { sqlState: '25006', effect: 'retry', reason: 'STORE_READ_ONLY' },
    { sqlState: 'XX000', effect: 'retry', reason: 'STORE_FAILED' },
    { sqlState: '58030', effect: 'retry', reason: 'STORE_FAILED' },
    { sqlState: 'F0000', effect: 'retry', reason: 'STORE_FAILED' },
  ])('has the effect $effect by SQLSTATE $sqlState', async ({ sqlState, effect, reason }) => {
    await using postgres = await FaultyPostgres.start(url)
    const store = opened(postgres.urlOf(url), 'faulty')
    await writeOne(store, 'contacts')
    postgres.fault = { sqlState }
    expect(await problemOf(writeOne(store, 'contacts'))).toMatchObject({ effect, reason })
  })
})

it('does not repeat the advice of the pool where the server does not answer', () => {
  const text =
    'Knex: Timeout acquiring a connection. The pool is probably full. Are you missing a .transacting(trx) call?'
  expect(findPostgresProblem(new Error(text))?.message).toBe(
    'the store is unavailable: no answer in time: check that it runs, and host and port of its address',
  )
})
