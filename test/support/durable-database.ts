import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { Database, migrate, startEmbeddedServer } from '../../src/foundation/database/index.ts'

/** A PostgreSQL of its own with the product's durable settings and schema; it goes with its data. */
export interface DurableDatabase extends AsyncDisposable {
  readonly database: Database
  /** For other processes. */
  readonly url: string
  /**
   * Crashes the server (immediate shutdown: what no commit has waited for is lost) and starts it again on the same data.
   * Connections that were open are gone; `database` opens new ones.
   */
  crash(): Promise<void>
  /** Its files. */
  readonly dataDir: string
}

/**
 * Starts one, for figures and faults: the databases of tests trade durability for speed.
 *
 * @param settings of the server, as `name=value`, beside the product's
 */
export async function startDurableDatabase(poolMax = 16, settings: readonly string[] = []): Promise<DurableDatabase> {
  const dataDir = mkdtempSync(join(tmpdir(), 'patchbay-durable-'))
  chmodSync(dataDir, 0o711) // root's servers run under another uid, which must be able to walk in
  let server = await startEmbeddedServer({ dataDir, settings })
  const url = `postgres://${server.user}@/postgres?host=${encodeURIComponent(server.host)}&port=${server.port}`
  const database = new Database({ target: { kind: 'url', url }, poolMax })
  await migrate(database)
  return {
    database,
    url,
    dataDir,
    async crash() {
      process.kill(server.pid, 'SIGQUIT')
      await until(() => !isAlive(server.pid))
      server = await startEmbeddedServer({ dataDir, settings })
    },
    async [Symbol.asyncDispose]() {
      await database[Symbol.asyncDispose]()
      await server.stop()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Polls for up to ten seconds. @throws Error after that */
async function until(isTrue: () => boolean): Promise<void> {
  for (let poll = 0; poll < 500; poll++) {
    if (isTrue()) return
    await setTimeout(20)
  }
  throw new Error('the server did not end within ten seconds')
}
