import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import Provider from 'oidc-provider'
import { query } from '../../../../src/foundation/database/index.ts'
import { generateKeyRingText } from '../../../../src/foundation/secrets/index.ts'
import { type DurableDatabase, startDurableDatabase } from '../../../support/durable-database.ts'
import {
  freePort,
  type RunningProduct,
  removeDataDir,
  startProduct,
  temporaryDataDir,
} from '../../../support/product.ts'
import { expectJson } from '../../../support/rest.ts'

const MAIN = join(import.meta.dirname, '../../../../src/main.ts')
/** Connections of each process: several of them share a PostgreSQL with 100. */
const POOL = '12'
const CLIENT = { id: 'faults', secret: 'the-clients-secret' }

/** oidc-provider with its development forms, and a count of what its token endpoint was asked. */
export class ConsentProvider implements AsyncDisposable {
  readonly url: string
  readonly #server
  exchanges = 0
  refused = 0
  revoked = 0

  private constructor(server: ReturnType<typeof createServer>, url: string, redirectUri: string) {
    this.#server = server
    this.url = url
    const provider = new Provider(url, {
      clients: [{ client_id: CLIENT.id, client_secret: CLIENT.secret, redirect_uris: [redirectUri] }],
      clientAuthMethods: ['client_secret_post', 'client_secret_basic'],
      pkce: { required: () => true },
      features: { devInteractions: { enabled: true } },
      findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    })
    provider.on('grant.success', () => this.exchanges++)
    provider.on('grant.error', () => {
      this.exchanges++
      this.refused++
    })
    provider.on('grant.revoked', () => this.revoked++)
    server.on('request', provider.callback())
  }

  static async start(redirectUri: string): Promise<ConsentProvider> {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return new ConsentProvider(server, `http://127.0.0.1:${(server.address() as AddressInfo).port}`, redirectUri)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

/** A browser without a screen: cookies by name, redirects by hand. */
export class HeadlessBrowser {
  readonly #cookies = new Map<string, string>()

  async request(url: string, form?: Readonly<Record<string, string>>): Promise<Response> {
    const response = await fetch(url, {
      method: form === undefined ? 'GET' : 'POST',
      redirect: 'manual',
      headers: { cookie: this.cookies, ...(form === undefined ? {} : { origin: new URL(url).origin }) },
      ...(form === undefined ? {} : { body: new URLSearchParams(form) }),
    })
    for (const cookie of response.headers.getSetCookie()) {
      const [pair = ''] = cookie.split(';')
      const at = pair.indexOf('=')
      this.#cookies.set(pair.slice(0, at), pair.slice(at + 1))
    }
    return response
  }

  get cookies(): string {
    return [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  }

  /** Logs in and consents at the provider. @returns the callback address with its parameters, which is not opened */
  async consent(authorizeUrl: string, callbackUri: string): Promise<string> {
    let url = authorizeUrl
    let form: Readonly<Record<string, string>> | undefined
    for (let hop = 0; hop < 12; hop++) {
      const response = await this.request(url, form)
      const location = response.headers.get('location')
      if (location !== null) {
        url = new URL(location, url).href
        if (url.startsWith(callbackUri)) return url
        form = undefined
        continue
      }
      const [, action] = /<form[^>]*action="([^"]+)"/.exec(await response.text()) ?? []
      if (action === undefined) throw new Error(`no form at ${url}`)
      form = url.includes('interaction') && hop < 4 ? LOGIN : CONSENT
      url = new URL(action, url).href
    }
    throw new Error('the provider does not come back')
  }
}

const LOGIN = { prompt: 'login', login: 'acme', password: 'any' }
const CONSENT = { prompt: 'consent' }

/** API servers and a worker as processes over one durable PostgreSQL, with one public address, and one installed integration. */
export class ConnectCluster implements AsyncDisposable {
  readonly servers: RunningProduct[] = []
  readonly #durable: DurableDatabase
  readonly #dataDir = temporaryDataDir()
  #provider: ConsentProvider | undefined

  private constructor(durable: DurableDatabase) {
    this.#durable = durable
  }

  static async start(servers: number): Promise<ConnectCluster> {
    const cluster = new ConnectCluster(await startDurableDatabase(8))
    const port = await freePort()
    const environment = {
      DATABASE_URL: cluster.#durable.url,
      PATCHBAY_DATABASE_POOL: POOL,
      PATCHBAY_ENCRYPTION_KEYS: generateKeyRingText('faults'),
      PATCHBAY_PUBLIC_URL: `http://127.0.0.1:${port}`,
      PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8',
      PATCHBAY_RATE_LIMIT: '0',
      PATCHBAY_RATE_LIMIT_ADDRESS: '0',
      PATCHBAY_LOG_LEVEL: 'error',
    }
    const options = { dataDir: cluster.#dataDir, environment }
    for (let started = 0; started < servers; started++)
      cluster.servers.push(
        await startProduct({
          ...options,
          command: [process.execPath, MAIN, started === 0 ? 'start' : 'serve'],
          ...(started === 0 ? { port } : {}),
        }),
      )
    cluster.#provider = await ConsentProvider.start(cluster.callbackUri)
    await cluster.#install()
    return cluster
  }

  get provider(): ConsentProvider {
    if (this.#provider === undefined) throw new Error('the provider was not started')
    return this.#provider
  }

  get #first(): RunningProduct {
    const [first] = this.servers
    if (first === undefined) throw new Error('no server was started')
    return first
  }

  get callbackUri(): string {
    return `${this.#first.url}/connect/callback`
  }

  async #install(): Promise<void> {
    const { url, bootstrap } = this.#first
    const { url: providerUrl } = this.provider
    const auth = {
      tokenHost: providerUrl,
      tokenPath: '/token',
      authorizeHost: providerUrl,
      authorizePath: '/auth',
      issuer: providerUrl,
    }
    const config = {
      label: 'Consent',
      base_url: providerUrl,
      credentials: { oauth2: { config: { client: CLIENT, auth, scope: ['openid'] } } },
      authorization: { format: 'bearer', config: { token: '{{oauth.token.access_token}}' } },
    }
    const { id } = await expectJson('POST', `${url}/integration`, bootstrap.team_token, { name: 'consent', config })
    const installation = { integration_id: id, show_in_catalog: true }
    await expectJson('POST', `${url}/environment-integration`, bootstrap.environment_token, installation)
  }

  /** A link of a new tenant, opened in a browser up to the third party's consent. */
  async begin(tenantId: string) {
    const { url, bootstrap } = this.#first
    const link = await expectJson('POST', `${url}/link-token`, bootstrap.environment_token, { tenant_id: tenantId })
    const browser = new HeadlessBrowser()
    await browser.request(String(link.url))
    const hop = await (await browser.request(`${url}/connect/${link.id}/form`, {})).text()
    const [, address] = /href="(http[^"]+\/auth\?[^"]+)"/.exec(hop) ?? []
    if (address === undefined) throw new Error(`no way to the third party: ${hop.slice(0, 2_000)}`)
    const authorizeUrl = address.replaceAll('&amp;', '&')
    return { id: link.id, browser, callback: await browser.consent(authorizeUrl, this.callbackUri) }
  }

  /** The link as the API shows it, once its activation has ended. */
  async settled(
    id: string,
  ): Promise<{ readonly status: string; readonly steps: readonly { readonly cause: string }[] }> {
    const { url, bootstrap } = this.#first
    for (let tries = 0; ; tries++) {
      const link = await expectJson('GET', `${url}/link-token/${id}`, bootstrap.environment_token)
      const { status, steps } = link as unknown as { status: string; steps: { cause: string }[] }
      if (!['exchanging', 'post_install', 'validating'].includes(status) || tries === 200) return { status, steps }
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  async countAccounts(tenantId: string): Promise<number> {
    const sql = 'select id from integrated_account where tenant_id = :tenantId'
    return (await query(this.#durable.database.pool, sql, { tenantId })).length
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.servers.map((server) => server.stop()))
    await this.#provider?.[Symbol.asyncDispose]()
    await this.#durable[Symbol.asyncDispose]()
    removeDataDir(this.#dataDir)
  }
}
