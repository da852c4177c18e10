import { randomBytes } from 'node:crypto'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { Database, migrate, startEmbeddedServer } from '../../src/foundation/database/index.ts'
import { createDatabase, dropDatabase } from './database.ts'
import { removeDataDir, startProduct, temporaryDataDir } from './product.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    databases: {
      /** A database of the server under test that is only connected to for creating others. */
      readonly serverUrl: string
      /** The migrated, empty database that others are cloned from. */
      readonly template: string
      /** Whether the server is the embedded one. */
      readonly isOwn: boolean
    }
    /** A data directory after its first start, which others are copied from. */
    dataDir: string
    /** What that start wrote to its standard output, which was no terminal, and to standard error. */
    firstOutput: string
  }
}

/** The server under test. */
interface Server {
  readonly url: string
  readonly isOwn: boolean
  stop(): Promise<void>
}

/**
 * One real PostgreSQL for the whole run, with a migrated template database that every test file clones in milliseconds:
 * the embedded one, or the one of TEST_DATABASE_URL, whose role must be allowed to create databases.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env.TEST_DATABASE_URL
  const template = `patchbay_template_${randomBytes(6).toString('hex')}`
  const dataDir = temporaryDataDir()
  const ready = startMigrated(given === '' ? undefined : given, template)
  const [server, firstOutput] = await Promise.all([ready, startOnce(dataDir)])
  project.provide('databases', { serverUrl: server.url, template, isOwn: server.isOwn })
  project.provide('dataDir', dataDir)
  project.provide('firstOutput', firstOutput)
  return async () => {
    removeDataDir(dataDir)
    await dropDatabase(server.url, template)
    await server.stop()
  }
}

async function startMigrated(given: string | undefined, template: string): Promise<Server> {
  const server = given === undefined ? await startOwn() : { url: given, isOwn: false, stop: async () => {} }
  await using database = new Database({ target: { kind: 'url', url: await createDatabase(server.url, template) } })
  await migrate(database)
  return server
}

/** Durability is off: these databases die with the run. Tests that kill the server start their own. */
async function startOwn(): Promise<Server> {
  const dataDir = mkdtempSync(join(tmpdir(), 'patchbay-test-'))
  chmodSync(dataDir, 0o711) // root's servers run under another uid, which must be able to walk in
  const settings = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off', 'max_connections=400']
  const server = await startEmbeddedServer({ dataDir, settings })
  return {
    isOwn: true,
    url: `postgres://${server.user}@/postgres?host=${encodeURIComponent(server.host)}&port=${server.port}`,
    async stop() {
      await server.stop()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

async function startOnce(dataDir: string): Promise<string> {
  const product = await startProduct({ dataDir })
  await product.stop()
  return product.output()
}
