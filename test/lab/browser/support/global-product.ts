import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { CommandProcess } from '../../../support/command.ts'
import { freePort, removeDataDir, startProduct, temporaryDataDir } from '../../../support/product.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    product: {
      /** The public address, on another site than `localhost`. */
      readonly url: string
      readonly teamToken: string
      readonly environmentToken: string
      /** Log lines of server and worker at debug level, and everything else they write. */
      readonly logFile: string
    }
  }
}

const ROOT = join(import.meta.dirname, '../../../..')

/** One product for the whole run: a server, a worker, and their database, as processes of their own. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const dataDir = temporaryDataDir()
  const logFolder = mkdtempSync(join(tmpdir(), 'patchbay-browser-'))
  const logFile = join(logFolder, 'product.log')
  const port = await freePort()
  const environment = {
    PATCHBAY_DATA_DIR: dataDir,
    PATCHBAY_PUBLIC_URL: `http://127.0.0.1:${port}`,
    PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8,::1/128',
    PATCHBAY_LOG_LEVEL: 'debug',
    PATCHBAY_RATE_LIMIT_ADDRESS: '0',
  }
  const command = [process.execPath, join(ROOT, 'src/main.ts'), 'serve']
  const server = await startProduct({ dataDir, environment, port, command })
  const worker = new CommandProcess(['worker'], environment)
  for (const child of [server.child, worker.child])
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => appendFileSync(logFile, chunk))
  appendFileSync(logFile, server.output() + worker.output)
  await worker.wrote('worker')
  const { team_token: teamToken, environment_token: environmentToken } = server.bootstrap
  project.provide('product', { url: server.url, teamToken, environmentToken, logFile })
  return async () => {
    await worker.stop()
    await server.stop()
    removeDataDir(dataDir)
    rmSync(logFolder, { recursive: true, force: true })
  }
}
