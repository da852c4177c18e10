import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Database } from '../../../../src/foundation/database/index.ts'
import { query, queryOne } from '../../../../src/foundation/database/index.ts'
import {
  createSecretStore,
  generateKeyRingText,
  parseKeyRing,
  type SecretStore,
} from '../../../../src/foundation/secrets/index.ts'
import { type DurableDatabase, startDurableDatabase } from '../../../support/durable-database.ts'
import {
  bareEnvironment,
  type RunningProduct,
  removeDataDir,
  startProduct,
  temporaryDataDir,
} from '../../../support/product.ts'
import { callRest, expectJson } from '../../../support/rest.ts'

const MAIN = join(import.meta.dirname, '../../../../src/main.ts')
/** Connections of each process: several of them share a PostgreSQL with 100. */
const POOL = '8'

export const CLIENT = { id: 'faults', secret: 'the-clients-secret' }

/** An account as the API shows it. */
interface ShownAccount {
  readonly status: string
  readonly last_error: string
}

/** API servers as processes over one durable PostgreSQL, and accounts with imported tokens. */
export class RefreshCluster implements AsyncDisposable {
  readonly servers: RunningProduct[] = []
  readonly secrets: SecretStore
  readonly #durable: DurableDatabase
  readonly #dataDir = temporaryDataDir()
  readonly #environment: NodeJS.ProcessEnv
  #installationId = ''

  private constructor(durable: DurableDatabase) {
    const keys = generateKeyRingText('faults')
    this.#durable = durable
    this.secrets = createSecretStore(parseKeyRing(keys))
    this.#environment = {
      DATABASE_URL: durable.url,
      PATCHBAY_DATABASE_POOL: POOL,
      PATCHBAY_ENCRYPTION_KEYS: keys,
      PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8',
      PATCHBAY_RATE_LIMIT: '0',
      PATCHBAY_RATE_LIMIT_ADDRESS: '0',
      PATCHBAY_LOG_LEVEL: 'error',
    }
  }

  /** @param tokenUrl of the token endpoint of every account @param apiUrl what calls go to */
  static async start(servers: number, endpoints: { readonly tokenUrl: string; readonly apiUrl: string }) {
    const cluster = new RefreshCluster(await startDurableDatabase(8))
    for (let started = 0; started < servers; started++) cluster.servers.push(await cluster.startServer())
    await cluster.install('faults', endpoints)
    return cluster
  }

  get database(): Database {
    return this.#durable.database
  }

  get #token(): string {
    return this.#first.bootstrap.environment_token
  }

  get #first(): RunningProduct {
    const [first] = this.servers
    if (first === undefined) throw new Error('no server was started')
    return first
  }

  /** Starts one more process, which is not among `servers`. */
  async startServer(): Promise<RunningProduct> {
    const options = { dataDir: this.#dataDir, environment: this.#environment }
    return await startProduct({ ...options, command: [process.execPath, MAIN, 'serve'] })
  }

  /** Starts a worker process, which ends on SIGTERM; resolves when it works. */
  async startWorker(): Promise<ChildProcess> {
    const env = { ...bareEnvironment(), ...this.#environment, PATCHBAY_DATA_DIR: this.#dataDir }
    const child = spawn(process.execPath, [MAIN, 'worker'], { env, stdio: ['ignore', 'pipe', 'inherit'] })
    await once(child.stdout, 'data')
    return child
  }

  /** Installs a third party; accounts that are added later are of it. */
  async install(name: string, { tokenUrl, apiUrl }: { readonly tokenUrl: string; readonly apiUrl: string }) {
    const { origin, pathname } = new URL(tokenUrl)
    const { url, bootstrap } = this.#first
    const config = {
      label: 'Refreshed',
      base_url: apiUrl,
      authorization: { format: 'bearer', config: { token: '{{oauth.token.access_token}}' } },
      credentials: {
        format: 'oauth2',
        config: { client: CLIENT, auth: { tokenHost: origin, tokenPath: pathname } },
      },
      retry: { max_attempts: 1 },
      resources: { items: { get: { method: 'get', path: '/items/{{id}}' } } },
    }
    const integration = await expectJson('POST', `${url}/integration`, bootstrap.team_token, { name, config })
    const installation = { integration_id: integration.id }
    this.#installationId = (await expectJson('POST', `${url}/environment-integration`, this.#token, installation)).id
  }

  /** An active account; by default its access token has expired. */
  async addAccount(refreshToken: string, expiresIn = 0): Promise<string> {
    const credentials = { access_token: `old ${refreshToken}`, refresh_token: refreshToken, expires_in: expiresIn }
    const body = { environment_integration_id: this.#installationId, tenant_id: 'acme', credentials }
    const { id } = await expectJson('POST', `${this.#first.url}/integrated-account`, this.#token, body)
    await query(this.database.pool, `update integrated_account set status = 'active' where id = :id returning id`, {
      id,
    })
    return id
  }

  /** One call through an account; resolves with the status of the response. */
  async call(server: RunningProduct, accountId: string): Promise<{ readonly status: number; readonly text: string }> {
    const path = `/proxy/items/7?integrated_account_id=${accountId}`
    const { status, body } = await callRest('GET', `${server.url}${path}`, this.#token)
    return { status, text: JSON.stringify(body) }
  }

  /** Asks for a new token, also during the back-off. */
  async refresh(accountId: string): Promise<void> {
    await callRest('POST', `${this.#first.url}/integrated-account/${accountId}/refresh-credentials`, this.#token, {})
  }

  async show(accountId: string): Promise<ShownAccount> {
    const { status, last_error } = await expectJson(
      'GET',
      `${this.#first.url}/integrated-account/${accountId}`,
      this.#token,
    )
    return { status, last_error }
  }

  /** What brought about the account's last change of status. */
  async lastCause(accountId: string): Promise<string | undefined> {
    const sql = `select cause from integrated_account_history where integrated_account_id = :accountId order by id desc limit 1`
    return (await queryOne<{ readonly cause: string }>(this.database.pool, sql, { accountId }))?.cause
  }

  /** The stored token of an account. */
  async storedToken(accountId: string): Promise<StoredTokenJson> {
    const { 'oauth.token': text = '{}' } = await this.secrets.get(this.database.pool, await this.#secretRef(accountId))
    return JSON.parse(text)
  }

  /** Makes the stored token expired, as time would. */
  async expire(accountId: string): Promise<void> {
    const token = { ...(await this.storedToken(accountId)), expires_at: new Date(0).toISOString() }
    const ref = await this.#secretRef(accountId)
    await this.secrets.put(this.database.pool, ref, { 'oauth.token': JSON.stringify(token) })
  }

  async #secretRef(subjectId: string) {
    const { environment_id: ownerId } = this.#first.bootstrap
    return { ownerId, subjectType: 'integrated_account', subjectId } as const
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.servers.map((server) => server.stop()))
    await this.#durable[Symbol.asyncDispose]()
    removeDataDir(this.#dataDir)
  }
}

interface StoredTokenJson {
  readonly version: number
  readonly obtained_at: string
  readonly expires_at: string | null
  readonly fields: { readonly access_token: string; readonly refresh_token?: string }
}
