import { describe, expect, it } from 'vitest'
import { createProxy } from '../../src/engine/proxy/index.ts'
import type { Tx } from '../../src/foundation/database/index.ts'
import { execute, query } from '../../src/foundation/database/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { AccountActivator } from '../../src/platform/accounts/account-activator.ts'
import {
  createAccountReader,
  createCredentialRefresher,
  createTokenProvider,
  deleteIntegratedAccount,
  runAccountActions,
  updateCredentials,
} from '../../src/platform/accounts/index.ts'
import { storeReconnectedAccount } from '../../src/platform/accounts/store-connected-account.ts'
import { caseCount } from '../support/case-count.ts'
import { fastClock } from '../support/fast-clock.ts'
import { interleavings, type Lane, type Operation } from '../support/interleavings.ts'
import { triggersOfTests } from '../unit/platform/accounts/fixture.ts'
import { tokensFixture } from '../unit/platform/accounts/token-fixture.ts'
import { CONFIG } from '../unit/platform/integrations/fixture.ts'

const { target, database, tx, own, tokenDeps, addInstallation, connect } = await tokensFixture()
const { expectAlways } = interleavings(target, fastClock())
const alone: Lane = { database, clock: fastClock(), step: async () => {} }

/** Each key is of another account of the third party; what `post_install` and `validation` see is stored. */
const DEFINITION: JsonObject = {
  ...CONFIG,
  retry: { max_attempts: 1 },
  credentials: { api_key: { config: { fields: [{ name: 'api_key', type: 'password', required: true }] } } },
  authorization: { format: 'bearer', config: { token: '{{api_key}}' } },
  actions: {
    post_install: {
      steps: [
        { name: 'me', type: 'request', config: { path: '/me' } },
        { type: 'update_context', config: { owner: '{{$steps.me.owner}}' } },
      ],
    },
    validation: { type: 'request', config: { path: '/check/{{context.owner}}' } },
  },
}

/** A third party that says of a key whose it is, and rejects it for what another one owns. */
function thirdParty(step: Lane['step']) {
  const send = async ({
    url,
    headers,
  }: {
    readonly url: string
    readonly headers: Readonly<Record<string, string>>
  }) => {
    await step('the request arrives')
    const given = Object.entries(headers).find(([name]) => name.toLowerCase() === 'authorization')?.[1] ?? ''
    const owner = given.replace('Bearer key-of-', '')
    const { pathname } = new URL(url)
    const isOwn = pathname.endsWith('/me') || pathname.endsWith(`/${owner}`)
    await step('the answer arrives')
    return { status: isOwn ? 200 : 403, headers: {}, body: Buffer.from(JSON.stringify({ owner })), url }
  }
  return { send, stream: () => Promise.reject(new Error('nothing is streamed')) }
}

/** What a process of its own has. */
function processOf({ database, clock, step }: Lane) {
  const http = thirdParty(step) as never
  const proxyWithoutRefresh = createProxy({ http, evaluator: tokenDeps.evaluator, clock })
  const given = { ...tokenDeps, database, clock, http, proxyWithoutRefresh, reader: createAccountReader(database) }
  const tokens = createTokenProvider(given)
  const onReportError = (error: unknown) => {
    throw error
  }
  const port = createCredentialRefresher({ ...given, tokens, onReportError })
  const ports = { credentialRefresher: port, accountReporter: port }
  const proxy = createProxy({ http, evaluator: tokenDeps.evaluator, clock, ...ports })
  const linkSessions = { recordActivation: async () => {} }
  return { ...given, tokens, proxy, triggers: triggersOfTests, linkSessions, random: () => 0 }
}

type Given = (id: string) => Operation

const activation: Given = () => (lane) => new AccountActivator(processOf(lane)).runOnce()

/** An operation that is one transaction. */
function transaction(work: (deps: ReturnType<typeof processOf>, tx: Tx, id: string) => Promise<unknown>): Given {
  return (id) => (lane) => lane.database.transaction((each) => work(processOf(lane), each, id))
}

const NEW = { api_key: 'key-of-new' }

/** What happens to an account while it is activated, and whose it is in the end. */
const MEANWHILE: Readonly<Record<string, { readonly owner: 'old' | 'new' | undefined; readonly change: Given }>> = {
  'a change of its credentials and another activation': {
    owner: 'new',
    change: (id) => async (lane) => {
      await transaction((deps, each) => updateCredentials(deps, each, own, { id, credentials: NEW }))(id)(lane)
      await activation(id)(lane)
    },
  },
  'a change of its credentials': {
    owner: 'new',
    change: transaction((deps, each, id) => updateCredentials(deps, each, own, { id, credentials: NEW })),
  },
  'a reconnection': {
    owner: 'new',
    change: transaction((deps, each, id) =>
      storeReconnectedAccount(deps, each, own, { id, credential: 'api_key', fields: NEW, context: {} }),
    ),
  },
  'an activation of a worker that takes over': {
    owner: 'old',
    change: (id) => async (lane) => {
      await execute(lane.database.pool, "update integrated_account set connecting_due_at = now() - interval '1 s'")
      await activation(id)(lane)
    },
  },
  'another activation': { owner: 'old', change: activation },
  'a repetition of its steps': {
    owner: 'old',
    change: transaction((deps, each, id) => runAccountActions(deps, each, own, { id }).catch(() => {})),
  },
  'a pause of the installation': {
    owner: 'old',
    change: () => async (lane) => {
      await execute(lane.database.pool, 'update environment_integration set is_enabled = false')
      await execute(lane.database.pool, 'update environment_integration set is_enabled = true')
    },
  },
  'its deletion': {
    owner: undefined,
    change: transaction((deps, each, id) => deleteIntegratedAccount(deps, each, own, { id })),
  },
}

const installation = await addInstallation(DEFINITION)

async function arrange(): Promise<string> {
  await execute(tx, "update integrated_account set status = 'active'")
  const input = { environmentIntegrationId: installation.id, credentials: { api_key: 'key-of-old' } }
  return (await connect(input)).id
}

const stored = async (id: string) =>
  await query(tx, `select status, context ->> 'owner' as owner from integrated_account where id = :id`, { id })

describe('an activation', () => {
  const cases = Object.entries(MEANWHILE).slice(0, caseCount(1, Object.keys(MEANWHILE).length))

  it.each(cases)('beside %s ends active with what belongs to its credentials', async (_, { owner, change }) => {
    await expectAlways<string>({
      arrange,
      operations: (id) => [activation(id), change(id)],
      async check(id) {
        // A lease without a holder is taken over.
        await execute(tx, "update integrated_account set connecting_due_at = now() - interval '1 s' where id = :id", {
          id,
        })
        while (await new AccountActivator(processOf(alone)).runOnce());
        expect(await stored(id)).toEqual(owner === undefined ? [] : [{ status: 'active', owner }])
      },
    })
  })
})
