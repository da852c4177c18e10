import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { afterAll, inject } from 'vitest'
import { Database, type DatabaseTarget } from '../../src/storage/index.ts'

/** The migrated, empty database that others are cloned from. */
export const TEMPLATE = 'patchbay_template'
const PORT = 5432
const USER = 'patchbay'

/** A database of one test file. */
export interface TestDatabase {
  readonly target: Extract<DatabaseTarget, { kind: 'socket' }>
  /** The same as `postgres://…`, for processes that are started with DATABASE_URL. */
  readonly url: string
  readonly database: Database
}

/** Clones the template into a fresh database that lives until the test file ends. Call at the top of a file or suite. */
export async function testDatabase(): Promise<TestDatabase> {
  const host = inject('databaseHost')
  const name = `t_${randomBytes(6).toString('hex')}`
  await createDatabase(host, name, TEMPLATE)
  const target = { kind: 'socket', host, port: PORT, user: USER, database: name } as const
  const database = new Database({ target })
  afterAll(async () => {
    await database[Symbol.asyncDispose]()
    await onServer(host, (client) => client.query(`drop database if exists ${name} with (force)`))
  })
  return { target, url: `postgres://${USER}@/${name}?host=${encodeURIComponent(host)}&port=${PORT}`, database }
}

/** Creates a database, from a template when one is named. */
export async function createDatabase(host: string, name: string, template = 'template1'): Promise<void> {
  await onServer(host, (client) => client.query(`create database ${name} template ${template}`))
}

async function onServer(host: string, work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ host, port: PORT, user: USER, database: 'postgres' })
  await client.connect()
  try {
    await work(client)
  } finally {
    await client.end()
  }
}
