import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { Database, migrate, startEmbedded } from '../../src/storage/index.ts'
import { createDatabase, TEMPLATE } from './database.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    databaseHost: string
  }
}

/**
 * One real PostgreSQL for the whole run, with a migrated template database that every test file clones in milliseconds.
 *
 * Durability is off: these databases die with the run. Tests that kill the server start their own.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const dataDir = mkdtempSync(join(tmpdir(), 'patchbay-test-'))
  chmodSync(dataDir, 0o711) // root's servers run under another uid, which must be able to walk in
  const server = await startEmbedded({
    dataDir,
    settings: ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off', 'max_connections=400'],
  })
  await createDatabase(server.host, TEMPLATE)
  await using template = new Database({
    target: { kind: 'socket', host: server.host, port: server.port, user: server.user, database: TEMPLATE },
  })
  await migrate(template)
  project.provide('databaseHost', server.host)
  return async () => {
    await server.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
}
