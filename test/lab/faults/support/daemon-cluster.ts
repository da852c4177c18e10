import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { type EmbeddedServer, startEmbeddedServer } from '../../../../src/foundation/database/index.ts'
import { type RunningProduct, removeDataDir, startProduct, temporaryDataDir } from '../../../support/product.ts'
import { callRest, expectJson, type JsonAnswer } from '../../../support/rest.ts'
import { type Seed, seedChain } from '../../../support/seed.ts'
import { DaemonProcess } from '../../../unit/cli/daemon/support/daemon-process.ts'

const GROUP = 'faults'
const CAPACITY = 16
const POLL_MS = 100

/** A daemon by the name under which the store knows it. */
export interface NamedDaemon {
  readonly name: string
  readonly process: DaemonProcess
}

/** The product as one process, a database of the customer's, a slow third party, and daemons that can be killed. */
export class DaemonCluster implements AsyncDisposable {
  readonly store: pg.Pool
  readonly daemons: NamedDaemon[] = []
  readonly #product: RunningProduct
  readonly #storeServer: EmbeddedServer
  readonly #storeUrl: string
  readonly #dirs: readonly string[]
  readonly #upstream: Server
  readonly #seed: Seed
  #names = 0

  private constructor(
    product: RunningProduct,
    server: EmbeddedServer,
    dirs: readonly string[],
    upstream: Server,
    seed: Seed,
  ) {
    this.#product = product
    this.#storeServer = server
    this.#dirs = dirs
    this.#upstream = upstream
    this.#seed = seed
    this.#storeUrl = `postgres://${server.user}@/postgres?host=${encodeURIComponent(server.host)}&port=${server.port}`
    this.store = new pg.Pool({ connectionString: this.#storeUrl, max: 4 })
  }

  /** @param list records of each run, and how long a page takes */
  static async start(list: { readonly records: number; readonly delayMs: () => number }): Promise<DaemonCluster> {
    const dir = mkdtempSync(join(tmpdir(), 'patchbay-faults-'))
    chmodSync(dir, 0o711) // root's servers run under another uid, which must be able to walk in
    const dataDir = temporaryDataDir()
    const environment = { PATCHBAY_RATE_LIMIT: '0', PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8' }
    const [server, product] = await Promise.all([
      startEmbeddedServer({ dataDir: dir }),
      startProduct({ dataDir, environment }),
    ])
    const upstream = await startList(list)
    const {
      team_token: teamToken,
      environment_token: environmentToken,
      environment_id: environmentId,
    } = product.bootstrap
    const upstreamUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`
    const seed = await seedChain({ url: product.url, teamToken, environmentToken, environmentId, upstreamUrl })
    const cluster = new DaemonCluster(product, server, [dir, dataDir], upstream, seed)
    const query = { run: '{{args.run}}' }
    const resources = [{ resource: 'contacts', method: 'list', persist: true, query }]
    await cluster.call('PATCH', `/sync-job/${seed.syncJobId}`, { resources })
    return cluster
  }

  /** Files of the store's PostgreSQL. */
  get storeDataDir(): string {
    return this.#storeServer.dataDir
  }

  /** Connects accounts and waits until they are proved. */
  async addAccounts(count: number): Promise<readonly string[]> {
    const body = {
      environment_integration_id: this.#seed.environmentIntegrationId,
      tenant_id: 'acme',
      credentials: { api_key: 'secret-key' },
    }
    const ids = await Promise.all(
      Array.from({ length: count }, async () => (await this.call('POST', '/integrated-account', body)).id),
    )
    for (const id of ids)
      while ((await this.call('GET', `/integrated-account/${id}`)).status !== 'active') await sleep(POLL_MS)
    return ids
  }

  /** Creates a run whose records carry the name. */
  async createRun(integratedAccountId: string, run: string): Promise<string> {
    const subject = { sync_job_id: this.#seed.syncJobId, integrated_account_id: integratedAccountId }
    const rest = { daemon_group_key: GROUP, ignore_previous_run: true, args: { run } }
    return (await this.call('POST', '/sync-job-run', { ...subject, ...rest })).id
  }

  /** The run as it is now. */
  async look(runId: string): Promise<{ readonly status: string; readonly attempt: number }> {
    const { status, attempt } = await this.call('GET', `/sync-job-run/${runId}`)
    return { status, attempt }
  }

  /** Retries a run that has failed; it may have been retried already. */
  async retryRun(runId: string): Promise<void> {
    await callRest('POST', `${this.#product.url}/sync-job-run/${runId}/retry`, this.#token, {})
  }

  async call(method: string, path: string, body?: object): Promise<JsonAnswer> {
    return await expectJson(method, `${this.#product.url}${path}`, this.#token, body)
  }

  /** Starts one more daemon; it works as soon as it can. */
  addDaemon(): NamedDaemon {
    this.#names++
    const name = `daemon-${this.#names}`
    const store = `${this.#storeUrl}&application_name=${name}`
    const daemon = {
      name,
      process: new DaemonProcess(
        ['--url', this.#product.url, '--group', GROUP, '--store', store, '--label', name, '--capacity', `${CAPACITY}`],
        { PATCHBAY_TOKEN: this.#token, PATCHBAY_LOG_LEVEL: 'error' },
      ),
    }
    this.daemons.push(daemon)
    return daemon
  }

  /** Kills a daemon with SIGKILL: it can do nothing about it. */
  async kill(daemon: NamedDaemon): Promise<Date> {
    this.daemons.splice(this.daemons.indexOf(daemon), 1)
    const at = new Date()
    await daemon.process.end('SIGKILL')
    return at
  }

  get #token(): string {
    return this.#product.bootstrap.environment_token
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { process } of this.daemons) await process[Symbol.asyncDispose]()
    await this.store.end()
    await this.#product.stop()
    await this.#storeServer.stop()
    this.#upstream.closeAllConnections()
    this.#upstream.close()
    await once(this.#upstream, 'close')
    const [storeDir = '', dataDir = ''] = this.#dirs
    rmSync(storeDir, { recursive: true, force: true })
    removeDataDir(dataDir)
  }
}

/** `/contacts?run=a&page=1&limit=100` answers `{data: [{id: 'a-0', run: 'a', place: 0}, …]}`. */
async function startList({ records, delayMs }: { records: number; delayMs: () => number }): Promise<Server> {
  const server = createServer(async (request, response) => {
    const { searchParams } = new URL(request.url ?? '', 'http://upstream')
    const [page, limit] = [Number(searchParams.get('page')), Number(searchParams.get('limit'))]
    const run = searchParams.get('run')
    const first = (page - 1) * limit
    const length = Math.max(0, Math.min(limit, records - first))
    const data = Array.from({ length }, (_, index) => ({ id: `${run}-${first + index}`, run, place: first + index }))
    await sleep(delayMs())
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ data }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}
