import { etagMismatch, notFound } from '../base/index.ts'
import {
  deleteIntegratedAccount as deleteRow,
  findIntegratedAccount,
  listIntegratedAccountIds,
  refuseWhileUsed,
  type Secrets,
  type Tx,
} from '../storage/index.ts'
import type { InEnvironment } from './integrated-account.ts'
import { accountSecrets } from './secret-ref.ts'

/** Accounts that are removed by force per look. */
const REMOVED_PER_LOOK = 500

/** Removes triggers, which belong to a room above this one. */
export interface TriggersOfAccount {
  /** Removes every trigger of the account with its schedule, and stops what runs for it. */
  removeOf(tx: Tx, environmentId: string, integratedAccountId: string): Promise<void>
}

/** What removing accounts needs. */
export interface AccountRemovalDeps {
  readonly secrets: Pick<Secrets, 'remove'>
  readonly triggers: TriggersOfAccount
}

/**
 * Disconnects an account and erases its credentials, and with `force` deletes its triggers. `tx` is a transaction.
 *
 * @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH; RESOURCE_IN_USE while it has triggers and `force` is not set
 */
export async function deleteIntegratedAccount(
  deps: AccountRemovalDeps,
  tx: Tx,
  { environmentId }: InEnvironment,
  input: { readonly id: string; readonly version?: number | undefined; readonly force?: boolean },
): Promise<void> {
  const { id, version, force = false } = input
  const account = await findIntegratedAccount(tx, environmentId, id)
  if (account === undefined) throw notFound('integrated_account', id)
  if (force) await deps.triggers.removeOf(tx, environmentId, id)
  const why = 'triggers run for this account: delete them first, or set force to delete them with it'
  const remove = () => deleteRow(tx, environmentId, id, version)
  if (!(await refuseWhileUsed({ type: 'integrated_account', id, why }, remove)))
    throw etagMismatch('integrated_account', id)
  await deps.secrets.remove(tx, accountSecrets(account))
}

/** Removes, by force, every account of an installation. `tx` is a transaction. */
export async function removeAccountsOf(
  deps: AccountRemovalDeps,
  tx: Tx,
  environmentId: string,
  environmentIntegrationId: string,
): Promise<void> {
  for (;;) {
    const ids = await listIntegratedAccountIds(tx, environmentId, environmentIntegrationId, REMOVED_PER_LOOK)
    for (const id of ids) await deleteIntegratedAccount(deps, tx, { environmentId }, { id, force: true })
    if (ids.length < REMOVED_PER_LOOK) return
  }
}
