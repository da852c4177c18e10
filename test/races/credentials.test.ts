import { describe, expect, it } from 'vitest'
import { createProxy } from '../../src/engine/proxy/index.ts'
import type { Tx } from '../../src/foundation/database/index.ts'
import { execute } from '../../src/foundation/database/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { AccountRemover } from '../../src/platform/accounts/account-remover.ts'
import {
  createAccountReader,
  createTokenProvider,
  deleteIntegratedAccount,
  loadAccountForCall,
  refreshCredentials,
  updateCredentials,
} from '../../src/platform/accounts/index.ts'
import { storeReconnectedAccount } from '../../src/platform/accounts/store-connected-account.ts'
import { refreshDueTokens } from '../../src/platform/accounts/token-refresher.ts'
import { caseCount, someCases } from '../support/case-count.ts'
import { fastClock } from '../support/fast-clock.ts'
import { interleavings, type Lane, type Operation } from '../support/interleavings.ts'
import { triggersOfTests } from '../unit/platform/accounts/fixture.ts'
import { tokensFixture } from '../unit/platform/accounts/token-fixture.ts'
import { CONFIG } from '../unit/platform/integrations/fixture.ts'

const fixture = await tokensFixture()
const { target, tx, own, tokenDeps, addConsent, secretsOf, statusOf, contextOf } = fixture
const { environmentId } = own
const { expectAlways } = interleavings(target, fastClock())

const DEFINITION: JsonObject = {
  ...CONFIG,
  authorization: { format: 'bearer' },
  credentials: {
    format: 'oauth2',
    config: {
      client: { id: 'app', secret: 'the-clients-secret' },
      auth: { tokenHost: 'https://{{subdomain}}.example.com', tokenPath: '/token', revokePath: '/revoke' },
      fields: [
        { name: 'subdomain', required: true, format: 'hostname_label' },
        { name: 'label' },
        { name: 'key', type: 'password' },
        { name: 'pin', type: 'password' },
      ],
    },
  },
}

/** A third party that rotates refresh tokens: each is used once, at the host that issued it, and the next one is in the answer. */
class RotatingThirdParty {
  readonly #usable = new Map<string, string>()
  #issued = 0
  /** Tokens that arrived where they were not issued. */
  readonly diverted: string[] = []

  get usable(): readonly string[] {
    return [...this.#usable.keys()]
  }

  issue(host: string): JsonObject {
    this.#issued++
    this.#usable.set(`refresh-${this.#issued}`, host)
    return { access_token: `access-${this.#issued}`, refresh_token: `refresh-${this.#issued}`, expires_in: 3600 }
  }

  /** The HTTP client of an operation: the request arrives, and its answer arrives, when it is the operation's turn. */
  http(step: Lane['step']) {
    return {
      send: async ({ url, body }: { readonly url: string; readonly body?: unknown }) => {
        await step('the request arrives')
        const { host, pathname } = new URL(url)
        const parameters = new URLSearchParams(String(body))
        const answer = this.#answer(host, pathname, parameters.get('refresh_token') ?? parameters.get('token') ?? '')
        await step('the answer arrives')
        const text = JSON.stringify(answer ?? { error: 'invalid_grant' })
        return { status: answer === undefined ? 400 : 200, headers: {}, body: Buffer.from(text), url }
      },
      stream: () => Promise.reject(new Error('tokens are not streamed')),
    }
  }

  #answer(host: string, path: string, token: string): JsonObject | undefined {
    const issuer = this.#usable.get(token)
    if (issuer !== undefined && issuer !== host) this.diverted.push(token)
    if (!this.#usable.delete(token)) return undefined
    return path === '/revoke' ? {} : this.issue(host)
  }
}

/** What an operation works on. */
interface State {
  readonly id: string
  readonly thirdParty: RotatingThirdParty
}

/** What a process of its own has. */
function processOf({ database, clock, step }: Lane, { thirdParty }: State) {
  const http = thirdParty.http(step)
  const proxyWithoutRefresh = createProxy({ http, evaluator: tokenDeps.evaluator, clock })
  const deps = { ...tokenDeps, database, clock, http, proxyWithoutRefresh, reader: createAccountReader(database) }
  return { ...deps, tokens: createTokenProvider(deps), triggers: triggersOfTests }
}

type Given = (state: State) => Operation

/** An operation that is one transaction. */
function transaction(work: (deps: ReturnType<typeof processOf>, tx: Tx, state: State) => Promise<unknown>): Given {
  return (state) => (lane) => lane.database.transaction((tx) => work(processOf(lane, state), tx, state))
}

const patch = (credentials: JsonObject) =>
  transaction((deps, tx, { id }) => updateCredentials(deps, tx, own, { id, credentials }))

/** Everything that claims the token of an account, reads it, sends it and stores the next one. */
const CLAIMS: Readonly<Record<string, Given>> = {
  'the background': (state) => (lane) => refreshDueTokens(processOf(lane, state)),
  'a call': (state) => (lane) => loadAccountForCall(processOf(lane, state), environmentId, state.id, 'call'),
  'a refresh on demand': (state) => (lane) => refreshCredentials(processOf(lane, state), environmentId, state.id),
}

/** Everything that changes what a claim reads. */
const CHANGES: Readonly<Record<string, Given>> = {
  'an import of a token': transaction((deps, tx, { id, thirdParty }) => {
    const credentials = { ...thirdParty.issue('other.example.com'), subdomain: 'other' }
    return updateCredentials(deps, tx, own, { id, credentials })
  }),
  'a reconnection': transaction((deps, tx, { id, thirdParty }) => {
    const fields = thirdParty.issue('other.example.com')
    const [accessToken, refreshToken] = [String(fields.access_token), String(fields.refresh_token)]
    const grant = { token: { accessToken, refreshToken, expiresAt: undefined, fields }, context: {} }
    const input = { id, credential: 'oauth2', fields: { subdomain: 'other' }, grant, context: {} }
    return storeReconnectedAccount(deps, tx, own, input)
  }),
  'a change of a field': patch({ label: 'other' }),
  'the deletion of the account': transaction((deps, tx, { id }) => deleteIntegratedAccount(deps, tx, own, { id })),
}

async function arrange(): Promise<State> {
  // Those of earlier states wait no longer.
  await execute(tx, 'update account_token set due_at = null')
  const thirdParty = new RotatingThirdParty()
  const credentials = { ...thirdParty.issue('acme.example.com'), expires_in: 0, key: 'old', pin: 'old', label: 'old' }
  return { thirdParty, id: await addConsent(credentials, DEFINITION) }
}

/** The account can be refreshed; when it was deleted, it cannot. */
async function expectUsableGrant({ id, thirdParty }: State): Promise<void> {
  expect(thirdParty.diverted).toEqual([])
  const { status } = await statusOf(id)
  if (status === undefined) {
    const http = thirdParty.http(async () => {})
    const remover = new AccountRemover({ ...tokenDeps, http, onFailure: () => {} })
    while (await remover.runOnce());
    return expect(thirdParty.usable).toEqual([])
  }
  const { 'oauth.token': text = '{}' } = await secretsOf(id)
  expect(thirdParty.usable).toContain(JSON.parse(text).fields?.refresh_token)
  expect(status).not.toBe('needs_reauth')
}

describe('a refresh token', () => {
  // The last one shares its code with calls.
  const claims = Object.entries(CLAIMS).slice(0, caseCount(2, 3))
  const beside = claims.flatMap(([name, claim], index) =>
    [...claims.slice(index), ...Object.entries(CHANGES)].map(([other, change]) => ({ name, claim, other, change })),
  )

  it.each(someCases(beside, 6))(
    'that is used by $name beside $other is never the stored one',
    async ({ claim, change }) => {
      const operations = (state: State) => [claim(state), change(state)] as const
      await expectAlways<State>({ arrange, operations, check: expectUsableGrant })
    },
  )
})

describe('changes of credentials', () => {
  const visible = { label: 'new' }
  const secret = { key: 'new' }
  const pairs: readonly (readonly [string, JsonObject, JsonObject])[] = [
    ['two secrets', secret, { pin: 'new' }],
    ['a secret and a visible field', visible, secret],
    ['a secret and one that is taken away', secret, { pin: null }],
  ]

  it.each(someCases(pairs, 1))('of %s at the same time are both kept', async (_, one, two) => {
    await expectAlways<State>({
      arrange,
      operations: (state) => [patch(one)(state), patch(two)(state)],
      async check({ id }) {
        const { 'oauth.token': _token, ...secrets } = await secretsOf(id)
        const stored = { ...(await contextOf(id)), ...mapValues(secrets, (text) => JSON.parse(text)) }
        const { label, key, pin } = { label: 'old', key: 'old', pin: 'old', ...one, ...two }
        expect(stored).toEqual({ subdomain: 'acme', label, key, ...(pin === null ? {} : { pin }) })
      },
    })
  })
})

function mapValues<Value, Result>(values: Readonly<Record<string, Value>>, map: (value: Value) => Result) {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, map(value)]))
}
