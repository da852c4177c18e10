import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../../../../src/foundation/database/index.ts'
import { query, queryOne } from '../../../../src/foundation/database/index.ts'
import { generateKeyRingText } from '../../../../src/foundation/secrets/index.ts'
import { type DurableDatabase, startDurableDatabase } from '../../../support/durable-database.ts'
import {
  bareEnvironment,
  type RunningProduct,
  removeDataDir,
  startProduct,
  temporaryDataDir,
} from '../../../support/product.ts'
import { expectJson } from '../../../support/rest.ts'
import { seedChain } from '../../../support/seed.ts'
import { installWriteAudit, registerWorker } from './write-audit.ts'

const MAIN = join(import.meta.dirname, '../../../../src/main.ts')
const CONNECT_DEADLINE_MS = 60_000
const POLL_MS = 250

/** A leased run. */
export interface HeldRun {
  readonly id: string
  readonly attempt: number
}

/** A worker process. */
export interface WorkerProcess {
  readonly child: ChildProcess
  readonly pid: number
}

/** The API and any number of workers as processes over a durable PostgreSQL of their own. */
export class RunCluster implements AsyncDisposable {
  readonly workers: WorkerProcess[] = []
  readonly accountIds: string[] = []
  readonly #durable: DurableDatabase
  readonly #product: RunningProduct
  readonly #environment: NodeJS.ProcessEnv
  #started = 0
  #seed: Awaited<ReturnType<typeof seedChain>> | undefined

  private constructor(durable: DurableDatabase, product: RunningProduct, environment: NodeJS.ProcessEnv) {
    this.#durable = durable
    this.#product = product
    this.#environment = environment
  }

  static async start(): Promise<RunCluster> {
    const durable = await startDurableDatabase(6)
    await installWriteAudit(durable.database)
    const environment = {
      DATABASE_URL: durable.url,
      PATCHBAY_ENCRYPTION_KEYS: generateKeyRingText('faults'),
      PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8',
      PATCHBAY_RATE_LIMIT: '0',
      PATCHBAY_LOG_LEVEL: 'error',
    }
    const command = [process.execPath, MAIN, 'serve']
    const product = await startProduct({ dataDir: temporaryDataDir(), environment, command })
    return new RunCluster(durable, product, environment)
  }

  get database(): Database {
    return this.#durable.database
  }

  /** Starts one more worker and waits until it works. */
  async addWorker(): Promise<WorkerProcess> {
    const application = `worker-${++this.#started}`
    const child = spawn(process.execPath, [MAIN, 'worker'], {
      env: {
        ...bareEnvironment(),
        ...this.#environment,
        PATCHBAY_DATABASE_POOL: '6',
        PATCHBAY_DATA_DIR: this.#product.dataDir,
        DATABASE_URL: `${this.#durable.url}&application_name=${application}`,
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await once(child.stdout, 'data')
    const worker = { child, pid: child.pid ?? 0 }
    await registerWorker(this.database, application, worker.pid)
    this.workers.push(worker)
    return worker
  }

  /** Kills a worker with SIGKILL and says what it held then, and when that was by the database's clock. */
  async kill(worker: WorkerProcess): Promise<{ readonly at: Date; readonly held: readonly HeldRun[] }> {
    this.workers.splice(this.workers.indexOf(worker), 1)
    const gone = once(worker.child, 'exit')
    worker.child.kill('SIGKILL')
    await gone
    const now = await queryOne<{ readonly at: Date }>(this.database.pool, 'select clock_timestamp() as at')
    return { at: now?.at ?? new Date(), held: await this.heldBy(worker) }
  }

  async heldBy({ pid }: WorkerProcess): Promise<readonly HeldRun[]> {
    const sql = `select run_id as id, attempt from run_lease where split_part(holder, ':', 2) = :pid`
    return await query(this.database.pool, sql, { pid: String(pid) })
  }

  /** Makes a job that lists contacts to the receiver, and accounts of it; workers must be there to connect them. */
  async seed(accounts: number, upstreamUrl: string, webhookUrl: string): Promise<void> {
    const { url, bootstrap } = this.#product
    const { team_token: teamToken, environment_token: environmentToken, environment_id: environmentId } = bootstrap
    const seed = await seedChain({ url, teamToken, environmentToken, environmentId, upstreamUrl, webhookUrl })
    this.#seed = seed
    this.accountIds.push(seed.integratedAccountId)
    while (this.accountIds.length < accounts) {
      const account = await this.#call('POST', '/integrated-account', {
        environment_integration_id: seed.environmentIntegrationId,
        tenant_id: 'acme',
        credentials: { api_key: 'secret-key' },
      })
      this.accountIds.push(account.id)
    }
    for (const end = Date.now() + CONNECT_DEADLINE_MS; Date.now() < end; await sleep(POLL_MS)) {
      const sql = `select id from integrated_account where status <> 'active'`
      if ((await query(this.database.pool, sql)).length === 0) return
    }
    throw new Error('the accounts were not connected in time')
  }

  /** Asks for a run of the job for an account; returns its id. */
  async createRun(accountId: string): Promise<string> {
    const { syncJobId, webhookId } = this.#seed ?? { syncJobId: '', webhookId: '' }
    const body = { sync_job_id: syncJobId, integrated_account_id: accountId, webhook_id: webhookId }
    return (await this.#call('POST', '/sync-job-run', body)).id
  }

  async retryRun(id: string): Promise<void> {
    await this.#call('POST', `/sync-job-run/${id}/retry`, {})
  }

  async statusOf(id: string): Promise<string | undefined> {
    const sql = 'select status from sync_job_run where id = :id'
    return (await queryOne<{ readonly status: string }>(this.database.pool, sql, { id }))?.status
  }

  #call(method: string, path: string, body: object) {
    return expectJson(method, `${this.#product.url}${path}`, this.#product.bootstrap.environment_token, body)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { child } of this.workers) child.kill('SIGKILL')
    await this.#product.stop()
    await this.#durable[Symbol.asyncDispose]()
    removeDataDir(this.#product.dataDir)
  }
}
