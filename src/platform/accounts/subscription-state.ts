import type { Db, Tx } from '../../foundation/database/index.ts'
import { type Json, type JsonObject, parseJson } from '../../foundation/json/index.ts'
import type { AccountDependencies } from './dependencies.ts'
import type { AccountRef } from './sql/integrated-account.ts'
import { accountSecretRef, SUBSCRIPTION_SECRET, type SubscriptionState } from './stored-credentials.ts'

/** What placeholders read of an account's subscriptions. */
export async function readSubscriptionState(
  { secrets }: Pick<AccountDependencies, 'secrets'>,
  tx: Db,
  account: AccountRef,
): Promise<SubscriptionState> {
  const { [SUBSCRIPTION_SECRET]: text } = await secrets.get(tx, accountSecretRef(account))
  return text === undefined ? { ids: {} } : (parseJson(text) as unknown as SubscriptionState)
}

/**
 * Changes what placeholders read of an account's subscriptions; what is undefined stays. The caller
 * holds a lock that orders concurrent changes.
 */
export async function updateSubscriptionState(
  deps: Pick<AccountDependencies, 'secrets'>,
  tx: Tx,
  account: AccountRef,
  change: { readonly secret?: Json | undefined; readonly ids?: JsonObject | undefined },
): Promise<void> {
  const { secret: storedSecret, ids: storedIds } = await readSubscriptionState(deps, tx, account)
  const { secret = storedSecret, ids = storedIds } = change
  const state: SubscriptionState = secret === undefined ? { ids } : { secret, ids }
  await deps.secrets.put(tx, accountSecretRef(account), { [SUBSCRIPTION_SECRET]: JSON.stringify(state) })
}
