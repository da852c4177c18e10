/**
 * Four API servers make 50 calls each at the same moment through one account whose access token has expired and whose refresh
 * token can be used once; 100 times, about two minutes. oidc-provider revokes the whole grant when a refresh token is used
 * twice. Each round must send one token request, and every call must succeed.
 */

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider from 'oidc-provider'
import { reportAtLeast, reportAtMost } from '../bench/support/report.ts'
import { CLIENT, RefreshCluster } from './support/refresh-cluster.ts'

const ROUNDS = Number(process.env.PATCHBAY_FAULTS_ROUNDS ?? 100)
const SERVERS = 4
const CALLS = 50
const SCOPE = 'openid offline_access'

/** oidc-provider with refresh tokens for one use, and a count of what it was asked. */
class RotatingProvider implements AsyncDisposable {
  readonly url: string
  readonly #server
  readonly #provider: Provider
  requests = 0
  refused = 0
  revoked = 0
  /** Access tokens of this provider that calls arrived with. */
  readonly seen = new Set<string>()

  private constructor(server: ReturnType<typeof createServer>, url: string) {
    this.#server = server
    this.url = url
    this.#provider = new Provider(url, {
      clients: [
        {
          client_id: CLIENT.id,
          client_secret: CLIENT.secret,
          grant_types: ['authorization_code', 'refresh_token'],
          redirect_uris: ['https://app.example.com/'],
        },
      ],
      features: { devInteractions: { enabled: false } },
      ttl: { AccessToken: 3_600, RefreshToken: 86_400, Grant: 86_400, IdToken: 3_600 },
      clientAuthMethods: ['client_secret_post', 'client_secret_basic'],
      rotateRefreshToken: true,
      issueRefreshToken: () => true,
      findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    })
    this.#provider.on('grant.success', () => this.requests++)
    this.#provider.on('grant.error', () => {
      this.requests++
      this.refused++
    })
    this.#provider.on('grant.revoked', () => this.revoked++)
    const serve = this.#provider.callback()
    server.on('request', (request, response) => {
      if (request.url?.startsWith('/items/') === true) {
        this.seen.add(request.headers.authorization?.replace('Bearer ', '') ?? '')
        response.setHeader('content-type', 'application/json').end('{"id":7}')
      } else void serve(request, response)
    })
  }

  static async start(): Promise<RotatingProvider> {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return new RotatingProvider(server, `http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  }

  /** A refresh token, as a customer's consent would bring it. */
  async consent(): Promise<string> {
    const client = await this.#provider.Client.find(CLIENT.id)
    if (client === undefined) throw new Error('the provider does not know its client')
    const grant = new this.#provider.Grant({ accountId: 'acme', clientId: CLIENT.id })
    grant.addOIDCScope(SCOPE)
    const grantId = await grant.save()
    const token = new this.#provider.RefreshToken({
      accountId: 'acme',
      client,
      grantId,
      scope: SCOPE,
      gty: 'authorization_code',
      expiresWithSession: false,
    } as ConstructorParameters<Provider['RefreshToken']>[0])
    return await token.save()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

async function race(): Promise<void> {
  await using provider = await RotatingProvider.start()
  await using cluster = await RefreshCluster.start(SERVERS, { tokenUrl: `${provider.url}/token`, apiUrl: provider.url })
  const accountId = await cluster.addAccount(await provider.consent())
  const failures: string[] = []
  let [calls, wrongRounds, strayTokens] = [0, 0, 0]
  for (let round = 0; round < ROUNDS; round++) {
    const before = provider.requests
    provider.seen.clear()
    const asked = cluster.servers.flatMap((server) =>
      Array.from({ length: CALLS }, () => cluster.call(server, accountId)),
    )
    for (const { status, text } of await Promise.all(asked)) {
      calls++
      if (status !== 200) failures.push(text)
    }
    if (provider.requests - before !== 1) wrongRounds++
    strayTokens += provider.seen.size - 1
    await cluster.expire(accountId)
  }
  for (const text of new Set(failures)) process.stderr.write(`${text}\n`)
  const { status } = await cluster.show(accountId)
  reportAtLeast('refresh-race/rounds', ROUNDS, 'rounds', 100)
  reportAtLeast('refresh-race/calls', calls, 'calls', SERVERS * CALLS * ROUNDS)
  reportAtMost('refresh-race/failed-calls', failures.length, 'calls', 0)
  reportAtMost('refresh-race/rounds-without-exactly-one-token-request', wrongRounds, 'rounds', 0)
  reportAtMost('refresh-race/refused-token-requests', provider.refused, 'requests', 0)
  reportAtMost('refresh-race/revoked-grants', provider.revoked, 'grants', 0)
  reportAtMost('refresh-race/calls-with-another-token', strayTokens, 'tokens', 0)
  reportAtMost('refresh-race/accounts-not-active', status === 'active' ? 0 : 1, 'accounts', 0)
}

await race()
