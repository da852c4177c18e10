import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../../../../src/foundation/database/index.ts'
import { query } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { generateKeyRingText } from '../../../../src/foundation/secrets/index.ts'
import { type DurableDatabase, startDurableDatabase } from '../../../support/durable-database.ts'
import {
  bareEnvironment,
  freePort,
  type RunningProduct,
  removeDataDir,
  startProduct,
  temporaryDataDir,
} from '../../../support/product.ts'
import { expectJson } from '../../../support/rest.ts'
import { type Balancer, startBalancer } from './balancer.ts'

const MAIN = join(import.meta.dirname, '../../../../src/main.ts')
/** Connections of each process: several of them share a PostgreSQL with 100. */
const POOL = '10'
/** Of a machine that does other work too. */
const HEALTHY_MS_MAX = 120_000
/** A process that starts while the database is down gives up, and is started again. */
const START_PAUSE_MS = 250
const SERVERS = 2
const WORKERS = 2

/** API servers behind a balancer, and workers, as processes over one durable PostgreSQL. */
export class WebhookCluster implements AsyncDisposable {
  readonly #durable: DurableDatabase
  readonly #balancer: Balancer
  readonly #ports: readonly number[]
  readonly #dataDir = temporaryDataDir()
  readonly #environment: NodeJS.ProcessEnv
  #servers: RunningProduct[] = []
  #workers: ChildProcess[] = []

  private constructor(durable: DurableDatabase, balancer: Balancer, ports: readonly number[]) {
    this.#durable = durable
    this.#balancer = balancer
    this.#ports = ports
    this.#environment = {
      DATABASE_URL: durable.url,
      PATCHBAY_DATABASE_POOL: POOL,
      PATCHBAY_ENCRYPTION_KEYS: generateKeyRingText('faults'),
      PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8',
      PATCHBAY_PUBLIC_URL: balancer.url,
      PATCHBAY_RATE_LIMIT: '0',
      PATCHBAY_RATE_LIMIT_ADDRESS: '0',
      PATCHBAY_LOG_LEVEL: 'error',
    }
  }

  static async start(): Promise<WebhookCluster> {
    const durable = await startDurableDatabase(8)
    const ports: number[] = []
    for (let count = 0; count < SERVERS; count++) ports.push(await freePort())
    const cluster = new WebhookCluster(durable, await startBalancer(ports), ports)
    for (const port of ports) cluster.#servers.push(await cluster.#startServer(port))
    for (let count = 0; count < WORKERS; count++) cluster.#workers.push(await cluster.#startWorker())
    return cluster
  }

  get database(): Database {
    return this.#durable.database
  }

  get #token(): string {
    const [first] = this.#servers
    if (first === undefined) throw new Error('no server was started')
    return first.bootstrap.environment_token
  }

  /** The address of an account, or of an installation with all its accounts. */
  addressOf(kind: 'integrated-account' | 'environment-integration', id: string): string {
    return `${this.#balancer.url}/${kind}-webhook/${id}`
  }

  /** Installs a definition. @returns the id of the installation */
  async install(name: string, config: JsonObject, variables: JsonObject): Promise<string> {
    const [first] = this.#servers
    const { url } = this.#balancer
    const body = { name, config }
    const integration = await expectJson('POST', `${url}/integration`, first?.bootstrap.team_token ?? '', body)
    const installation = { integration_id: integration.id, override: { environment_variables: variables } }
    return (await expectJson('POST', `${url}/environment-integration`, this.#token, installation)).id
  }

  async connect(installationId: string, context: JsonObject): Promise<string> {
    const body = {
      environment_integration_id: installationId,
      tenant_id: 'acme',
      credentials: { api_key: 'the-key' },
      context,
    }
    return (await expectJson('POST', `${this.#balancer.url}/integrated-account`, this.#token, body)).id
  }

  async delete(accountId: string): Promise<void> {
    await fetch(`${this.#balancer.url}/integrated-account/${accountId}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${this.#token}` },
    })
  }

  /** Kills a server by SIGKILL and starts it again; the other one serves meanwhile. */
  async killServer(index: number): Promise<void> {
    const server = this.#servers[index % SERVERS]
    if (server === undefined) return
    const gone = once(server.child, 'exit')
    server.child.kill('SIGKILL')
    await gone
    for (let isStarted = false; !isStarted; await sleep(START_PAUSE_MS)) {
      const started = await this.#startServer(this.#ports[index % SERVERS] ?? 0).catch(() => undefined)
      if (started !== undefined) this.#servers[index % SERVERS] = started
      isStarted = started !== undefined
    }
  }

  /** Kills a worker by SIGKILL and starts another one. */
  async killWorker(index: number): Promise<void> {
    const worker = this.#workers[index % WORKERS]
    if (worker === undefined) return
    const gone = once(worker, 'exit')
    worker.kill('SIGKILL')
    await gone
    this.#workers[index % WORKERS] = await this.#startWorker()
  }

  /** Crashes PostgreSQL and starts it again. */
  async crashDatabase(): Promise<void> {
    await this.#durable.crash()
  }

  /** How often each record had its effect, an event `record:created`. */
  async effects(): Promise<ReadonlyMap<string, number>> {
    const sql = `select payload ->> 'record_id' as id, count(*)::int4 as count from event
      where type = 'record:created' group by 1`
    const rows = await query<{ readonly id: string; readonly count: number }>(this.database.pool, sql, {})
    return new Map(rows.map(({ id, count }) => [id, count]))
  }

  /** Subscriptions by status. */
  async subscriptions(): Promise<readonly { readonly status: string; readonly error: string }[]> {
    return await query(this.database.pool, 'select status, error from webhook_subscription', {})
  }

  async #startServer(port: number): Promise<RunningProduct> {
    const options = { dataDir: this.#dataDir, environment: this.#environment, port, healthyWithinMs: HEALTHY_MS_MAX }
    return await startProduct({ ...options, command: [process.execPath, MAIN, 'serve'] })
  }

  async #startWorker(): Promise<ChildProcess> {
    const env = { ...bareEnvironment(), ...this.#environment, PATCHBAY_DATA_DIR: this.#dataDir }
    for (;;) {
      const child = spawn(process.execPath, [MAIN, 'worker'], { env, stdio: ['ignore', 'pipe', 'inherit'] })
      const isStarted = once(child.stdout, 'data').then(() => true)
      if (await Promise.race([isStarted, once(child, 'exit').then(() => false)])) return child
      await sleep(START_PAUSE_MS)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const gone = this.#workers.map((worker) => once(worker, 'exit'))
    for (const worker of this.#workers) worker.kill('SIGKILL')
    await Promise.all([...gone, ...this.#servers.map((server) => server.stop())])
    await this.#balancer[Symbol.asyncDispose]()
    await this.#durable[Symbol.asyncDispose]()
    removeDataDir(this.#dataDir)
  }
}
