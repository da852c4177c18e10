import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { afterAll, inject } from 'vitest'
import { Database, type DatabaseTarget } from '../../src/foundation/database/index.ts'
import { DatabaseClock } from './database-clock.ts'
import { expectDescribedEvents } from './event-schemas.ts'
import { expectExactFigures } from './figures.ts'

/** A database of one test file. */
export interface TestDatabase {
  /** `postgres://…`, also for processes that are started with DATABASE_URL. */
  readonly url: string
  readonly target: DatabaseTarget
  readonly database: Database
}

/**
 * Clones the template into a fresh database that lives until the test file ends, which fails when it holds events that their
 * schema does not describe, or figures that are not the number of rows. Call at the top of a file or suite.
 */
export async function testDatabase(): Promise<TestDatabase> {
  const { target, url, drop } = await cloneTemplate()
  const database = new Database({ target })
  afterAll(async () => {
    await database[Symbol.asyncDispose]()
    await drop()
  })
  return { url, target, database }
}

/** A quarter less work than through the log, for the embedded server; PostgreSQL 14 knows no other way and no word for it. */
const AS_FILES = 'strategy file_copy'

/** Like `testDatabase`, with a clock that the test moves: `now()` and `clock_timestamp()` of every statement are its time. */
export async function clockedDatabase(): Promise<TestDatabase & { readonly clock: DatabaseClock }> {
  const cloned = await cloneTemplate()
  const { drop } = cloned
  const clock = await DatabaseClock.install(cloned.url)
  const { url } = clock
  const target = { kind: 'url', url } as const
  const database = new Database({ target })
  afterAll(async () => {
    await database[Symbol.asyncDispose]()
    await clock[Symbol.asyncDispose]()
    await drop()
  })
  return { url, target, database, clock }
}

async function cloneTemplate() {
  const { serverUrl, template, isOwn } = inject('databases')
  const name = `patchbay_t_${randomBytes(6).toString('hex')}`
  const url = await createDatabase(serverUrl, name, isOwn ? `${template} ${AS_FILES}` : template)
  const drop = async () => {
    const checks = Promise.all([expectDescribedEvents(url), expectExactFigures(url)])
    await checks.finally(() => dropDatabase(serverUrl, name))
  }
  return { url, target: { kind: 'url', url } as const, drop }
}

/** Creates a database, from a template when one is named, and returns its URL. */
export async function createDatabase(serverUrl: string, name: string, template = 'template1'): Promise<string> {
  await onServer(serverUrl, `create database ${name} template ${template}`)
  return urlOfDatabase(serverUrl, name)
}

const OBJECT_IN_USE = '55006'

/**
 * Drops a database. The server waits some seconds for connections that are just being closed: the driver reports one that the
 * server ends meanwhile as an error that has no listener any more. Connections that stay are ended.
 */
export async function dropDatabase(serverUrl: string, name: string): Promise<void> {
  try {
    await onServer(serverUrl, `drop database if exists ${name}`)
  } catch (error) {
    if (!(error instanceof pg.DatabaseError) || error.code !== OBJECT_IN_USE) throw error
    await onServer(serverUrl, `drop database if exists ${name} with (force)`)
  }
}

/** The URL of another database of the same server. Sockets have URLs without a host, which `URL` does not take. */
function urlOfDatabase(serverUrl: string, name: string): string {
  return serverUrl.replace(/^(\w+:\/\/[^/?]*)(\/[^?]*)?/, `$1/${name}`)
}

async function onServer(serverUrl: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: serverUrl })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}

/** The database with something that happens in each of its transactions once all is written; an error undoes the transaction. */
export function beforeCommit(database: Database, hook: () => Promise<void>): Database {
  const transaction: Database['transaction'] = (work) =>
    database.transaction(async (tx) => {
      const result = await work(tx)
      await hook()
      return result
    })
  return { pool: database.pool, transaction } as Database
}
