import type { SubscriptionPlan } from '../../engine/definitions/index.ts'
import { Failure, newId, notFound } from '../../foundation/base/index.ts'
import type { Tx } from '../../foundation/database/index.ts'
import type { AccountDependencies, AccountSubscriptions } from '../accounts/dependencies.ts'
import type { ResolvedAccount } from '../accounts/resolved-account.ts'
import { type AccountRef, findIntegratedAccount } from '../accounts/sql/integrated-account.ts'
import { endSubscription, type SubscriptionDependencies } from './request.ts'
import { listSubscriptions, scheduleSubscriptions } from './sql/subscription.ts'

/** For all steps that delete one. */
const END_TIMEOUT_MS = 30_000

/** What the life cycle of accounts takes of their subscriptions. */
export function createAccountSubscriptions(
  deps: Pick<AccountDependencies, 'definitions'> & Pick<SubscriptionDependencies, 'proxy'>,
): AccountSubscriptions {
  return {
    async schedule(tx, { environmentId, id }) {
      const account = await findIntegratedAccount(tx, environmentId, id)
      if (account === undefined) throw notFound('integrated_account', id)
      const { webhookSubscription: plan } = (await deps.definitions.getVersion(tx, account)).plan
      if (plan === undefined || !mayOrder(plan, account)) return
      const isReplacementDue = plan.actions.renew === undefined
      await scheduleSubscriptions(tx, account, { events: plan.keys, isReplacementDue })
    },
    async list(tx, account) {
      // Locked: a worker that is creating one must not store it once they have been listed.
      const subscriptions = await listSubscriptions(tx, account, 'update')
      return subscriptions.flatMap(({ event, externalId, replacedId }) =>
        [externalId, replacedId].flatMap((id) => (id === null ? [] : [{ event, id }])),
      )
    },
    async end(resolved, { event, id }) {
      const { webhookSubscription: plan } = resolved.plan
      if (plan?.actions.delete === undefined) return undefined
      const signal = AbortSignal.timeout(END_TIMEOUT_MS)
      const error = await endSubscription(deps, { resolved, plan, event, id, attemptId: newId(), signal })
      if (error === undefined || error.kind === 'gone') return undefined
      return { isTransient: error.kind === 'transient', message: error.error }
    },
  }
}

/** Sandbox accounts change nothing at the third party. */
function mayOrder({ actions }: SubscriptionPlan, { isSandbox }: ResolvedAccount['account']): boolean {
  return !isSandbox || actions.create?.isWrite !== true
}

/**
 * Makes workers create the subscriptions of an account anew, also those that work.
 *
 * @throws Failure RESOURCE_NOT_FOUND, METHOD_NOT_DEFINED when the definition orders no webhooks, SANDBOX_ACCOUNT_READ_ONLY, DEFINITION_INVALID
 */
export async function recreateSubscriptions(
  { definitions }: Pick<AccountDependencies, 'definitions'>,
  tx: Tx,
  { environmentId, id }: AccountRef,
): Promise<void> {
  const account = await findIntegratedAccount(tx, environmentId, id)
  if (account === undefined) throw notFound('integrated_account', id)
  const { webhookSubscription: plan } = (await definitions.getVersion(tx, account)).plan
  const resource = { type: 'integrated_account', id }
  if (plan === undefined)
    throw new Failure('METHOD_NOT_DEFINED', 'the integration orders no webhooks: it has no webhook.subscription', {
      resource,
    })
  if (!mayOrder(plan, account))
    throw new Failure('SANDBOX_ACCOUNT_READ_ONLY', 'sandbox accounts only read: they order no webhooks', { resource })
  await scheduleSubscriptions(tx, account, { events: plan.keys, isReplacementDue: true })
}
