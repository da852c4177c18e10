import { afterEach } from 'vitest'
import { createProxy } from '../../../../src/engine/proxy/index.ts'
import { execute, query } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { AccountRemover } from '../../../../src/platform/accounts/account-remover.ts'
import { deleteIntegratedAccount, type RemovalFailure } from '../../../../src/platform/accounts/index.ts'
import {
  createSilentReporter,
  readWebhookOverview,
  recreateSubscriptions,
} from '../../../../src/platform/subscriptions/index.ts'
import { AccountSubscriber, type SubscriberOptions } from '../../../../src/platform/subscriptions/subscriber.ts'
import { activationFixture } from '../accounts/activation-fixture.ts'
import { triggersOfTests } from '../accounts/fixture.ts'

export const PUBLIC_URL = 'https://patchbay.example'

/** Accounts of a third party that orders webhooks by requests, and workers that make them. */
export async function subscriptionsFixture(publicUrl = PUBLIC_URL) {
  const fixture = await activationFixture({ publicUrl })
  const { database, tx, own, deps, accountPort, connectTo } = fixture
  const proxy = createProxy({
    ...deps,
    credentialRefresher: accountPort,
    accountReporter: createSilentReporter(accountPort),
  })
  afterEach(async () => {
    await execute(tx, 'delete from webhook_subscription', {})
    await execute(tx, 'delete from account_removal', {})
  })
  const failures: RemovalFailure[] = []
  const options: SubscriberOptions = { ...deps, proxy, random: () => 0 }
  const worker = (given: Partial<SubscriberOptions> = {}) => new AccountSubscriber({ ...options, ...given })
  const remover = new AccountRemover({
    ...deps,
    onFailure: (failure) => failures.push(failure),
  })
  const refOf = (id: string) => ({ environmentId: own.environmentId, id })
  return {
    ...fixture,
    worker,
    failures,
    refOf,
    /** An account of a definition with this block. */
    subscribeTo: (subscription: JsonObject, config: JsonObject = {}, input: { readonly isSandbox?: boolean } = {}) =>
      connectTo({ webhook: { subscription }, ...config }, input),
    recreate: (id: string) => database.transaction((each) => recreateSubscriptions(deps, each, refOf(id))),
    overview: (id: string) => readWebhookOverview(tx, refOf(id)),
    async only(id: string) {
      const { subscriptions } = await readWebhookOverview(tx, refOf(id))
      const [subscription] = subscriptions
      if (subscription === undefined || subscriptions.length > 1)
        throw new Error(`${subscriptions.length} subscriptions`)
      return subscription
    },
    remove: (id: string) =>
      database.transaction((each) =>
        deleteIntegratedAccount({ ...deps, triggers: triggersOfTests }, each, own, { id }),
      ),
    removeAtThirdParty: () => remover.runOnce(),
    waitingRemovals: () => query(tx, 'select * from account_removal'),
    /** Lets time pass for the subscriptions of an account. */
    async pass(id: string, ms: number) {
      const sql = `update webhook_subscription set due_at = due_at - :ms * interval '1 millisecond',
        expires_at = expires_at - :ms * interval '1 millisecond' where integrated_account_id = :id`
      await execute(tx, sql, { ms, id })
    },
    /** Makes what is to be removed due. */
    passRemovals: () => execute(tx, "update account_removal set due_at = now() - interval '1 second'", {}),
    delaySeconds: async (id: string) => {
      const sql = `select extract(epoch from due_at - now())::float8 as seconds from webhook_subscription
        where integrated_account_id = :id`
      const [row] = await query<{ readonly seconds: number | null }>(tx, sql, { id })
      return row?.seconds
    },
  }
}
