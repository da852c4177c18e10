import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../../../../src/foundation/database/index.ts'
import { type DurableDatabase, startDurableDatabase } from '../../../support/durable-database.ts'
import { bareEnvironment, freePort, removeDataDir, startProduct, temporaryDataDir } from '../../../support/product.ts'

const MAIN = join(import.meta.dirname, '../../../../src/main.ts')

/** Ends of a command. */
export interface CommandEnd {
  readonly exitCode: number | null
  readonly output: string
}

/** A server or worker with its encryption keys. */
interface Member {
  readonly command: 'serve' | 'worker'
  readonly port: number
  keys: string
  child: ChildProcess | undefined
}

/** Three servers and a worker over one database and object store, each with encryption keys of its own. */
export class KeyCluster implements AsyncDisposable {
  readonly objectDirectory = mkdtempSync(join(tmpdir(), 'patchbay-key-objects-'))
  readonly members: readonly Member[]
  teamToken = ''
  readonly #durable: DurableDatabase
  readonly #dataDir = temporaryDataDir()
  kills = 0

  private constructor(durable: DurableDatabase, members: readonly Member[]) {
    this.#durable = durable
    this.members = members
  }

  static async start(keys: string): Promise<KeyCluster> {
    const durable = await startDurableDatabase(8)
    const servers: Member[] = []
    for (let at = 0; at < 3; at++) servers.push({ command: 'serve', port: await freePort(), keys, child: undefined })
    const cluster = new KeyCluster(durable, [...servers, { command: 'worker', port: 0, keys, child: undefined }])
    for (const member of cluster.members) await cluster.restart(member, keys)
    return cluster
  }

  get database(): Database {
    return this.#durable.database
  }

  /** Addresses of the servers that run. */
  get urls(): readonly string[] {
    return this.members.flatMap(({ port, child }) =>
      port > 0 && child !== undefined ? [`http://127.0.0.1:${port}`] : [],
    )
  }

  /** Kills a member with SIGKILL and starts it again with its keys. */
  async kill(member: Member): Promise<void> {
    const { child } = member
    member.child = undefined
    if (child !== undefined) {
      const gone = once(child, 'exit')
      child.kill('SIGKILL')
      await gone
      this.kills++
    }
    await this.restart(member, member.keys)
  }

  /** Ends a member by SIGTERM and starts it with these keys. */
  async restart(member: Member, keys: string): Promise<void> {
    const { child, command, port } = member
    member.child = undefined
    member.keys = keys
    if (child !== undefined) {
      const gone = once(child, 'exit')
      child.kill('SIGTERM')
      await gone
    }
    const environment = this.#environment(keys)
    if (command === 'worker') {
      const worker = spawn(process.execPath, [MAIN, 'worker'], {
        env: environment,
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      await once(worker.stdout, 'data')
      member.child = worker
      return
    }
    const options = { dataDir: this.#dataDir, environment, port, command: [process.execPath, MAIN, 'serve'] }
    const product = await startProduct(options)
    this.teamToken = product.bootstrap.team_token
    member.child = product.child
  }

  /** Runs `patchbay keys …` with these keys; it is killed when `killWhen` resolves. */
  async keysCommand(
    keys: string,
    args: readonly string[],
    killWhen?: (child: ChildProcess) => Promise<void>,
  ): Promise<CommandEnd> {
    const child = spawn(process.execPath, [MAIN, 'keys', ...args], {
      env: this.#environment(keys),
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
    const closed = once(child, 'close')
    if (killWhen !== undefined) {
      await Promise.race([killWhen(child), closed])
      if (child.exitCode === null) this.kills++
      child.kill('SIGKILL')
    }
    await closed
    return { exitCode: child.exitCode, output }
  }

  #environment(keys: string): NodeJS.ProcessEnv {
    return {
      ...bareEnvironment(),
      DATABASE_URL: this.#durable.url,
      PATCHBAY_ENCRYPTION_KEYS: keys,
      PATCHBAY_DATA_DIR: this.#dataDir,
      PATCHBAY_OBJECT_STORE_DIRECTORY: this.objectDirectory,
      PATCHBAY_DATABASE_POOL: '8',
      PATCHBAY_RATE_LIMIT: '0',
      PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8',
      PATCHBAY_LOG_LEVEL: 'error',
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { child } of this.members) child?.kill('SIGKILL')
    await sleep(500)
    await this.#durable[Symbol.asyncDispose]()
    removeDataDir(this.#dataDir)
    rmSync(this.objectDirectory, { recursive: true, force: true })
  }
}
