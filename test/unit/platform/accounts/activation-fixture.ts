import { afterAll, afterEach } from 'vitest'
import { createEvaluator } from '../../../../src/engine/expressions/index.ts'
import { createProxy } from '../../../../src/engine/proxy/index.ts'
import { systemClock } from '../../../../src/foundation/base/index.ts'
import { execute } from '../../../../src/foundation/database/index.ts'
import { createEgressPolicy, createHttpClient } from '../../../../src/foundation/egress/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { AccountActivator, type AccountActivatorOptions } from '../../../../src/platform/accounts/account-activator.ts'
import type { ActivationChange, LinkSessionPort } from '../../../../src/platform/accounts/dependencies.ts'
import {
  createCredentialRefresher,
  createTokenProvider,
  getIntegratedAccount,
  listIntegratedAccountHistory,
  loadAccountForCall,
  runAccountActions,
} from '../../../../src/platform/accounts/index.ts'
import { createAccountSubscriptions } from '../../../../src/platform/subscriptions/index.ts'
import { startUpstream } from '../../../support/upstream.ts'
import { CONFIG } from '../integrations/fixture.ts'
import { accountsFixture } from './fixture.ts'

/** The accounts fixture with a third party on a real socket, and workers that activate accounts of it. */
export async function activationFixture({ publicUrl }: { readonly publicUrl?: string } = {}) {
  const upstream = await startUpstream()
  const http = createHttpClient({ policy: createEgressPolicy({ allow: '127.0.0.0/8' }) })
  const evaluator = createEvaluator()
  afterAll(async () => {
    for (const each of [evaluator, http, upstream]) await each[Symbol.asyncDispose]()
  })
  const subscriptionProxy = createProxy({ http, evaluator, clock: systemClock })
  const fixture = await accountsFixture(systemClock, {
    connection: () => (publicUrl === undefined ? {} : { public_url: publicUrl }),
    subscriptionsOf: (definitions) => createAccountSubscriptions({ definitions, proxy: subscriptionProxy }),
  })
  const { database, tx, own, accountDeps, addInstallation, connect } = fixture
  const proxyWithoutRefresh = createProxy({ http, evaluator, clock: accountDeps.clock })
  const tokens = createTokenProvider({ ...accountDeps, database, evaluator, http, proxyWithoutRefresh })
  const onReportError = (error: unknown) => {
    throw error
  }
  const accountPort = createCredentialRefresher({ ...accountDeps, database, tokens, onReportError })
  const proxy = createProxy({
    http,
    evaluator,
    clock: accountDeps.clock,
    credentialRefresher: accountPort,
    accountReporter: accountPort,
  })
  const reported: ActivationChange[] = []
  const linkSessions: LinkSessionPort = {
    recordActivation: async (_tx, _account, change) => {
      reported.push(change)
    },
  }
  const deps: AccountActivatorOptions = {
    ...accountDeps,
    database,
    evaluator,
    tokens,
    proxy,
    linkSessions,
    random: () => 1,
  }
  const worker = (given: Partial<AccountActivatorOptions> = {}) => new AccountActivator({ ...deps, ...given })
  afterEach(async () => {
    upstream.verify()
    reported.length = 0
    await execute(tx, 'update integrated_account set status = :status', { status: 'active' })
  })

  return {
    ...fixture,
    upstream,
    proxy,
    accountPort,
    load: (id: string) => loadAccountForCall({ ...accountDeps, database, tokens }, own.environmentId, id, 'call'),
    deps: { ...accountDeps, database, tokens, evaluator, http, proxyWithoutRefresh },
    async setStatus(id: string, status: string) {
      await execute(tx, 'update integrated_account set status = :status where id = :id', { status, id })
    },
    /** What was reported to link sessions in this test. */
    reported,
    worker,
    /** A connecting account of a definition that asks for an API key; nothing is sent twice within a try. */
    async connectTo(config: JsonObject, input: { readonly isSandbox?: boolean } = {}) {
      const whole = { ...CONFIG, base_url: upstream.url, retry: { max_attempts: 1 }, ...config }
      const { id: environmentIntegrationId } = await addInstallation(whole)
      return await connect({ environmentIntegrationId, credentials: { api_key: 'key-canary' }, ...input })
    },
    read: (id: string) => getIntegratedAccount(accountDeps, tx, own, id),
    repeat: (id: string, isIdentityChangeConfirmed = false) =>
      database.transaction((each) => runAccountActions(accountDeps, each, own, { id, isIdentityChangeConfirmed })),
    async causes(id: string) {
      const history = await listIntegratedAccountHistory(tx, own, id, { before: undefined, limit: 50 })
      return history.map(({ cause }) => cause).reverse()
    },
    /** Lets time pass for an account. */
    async pass(id: string, ms: number) {
      const sql = `update integrated_account set connecting_due_at = connecting_due_at - :ms * interval '1 millisecond' where id = :id`
      await execute(tx, sql, { ms, id })
    },
  }
}
