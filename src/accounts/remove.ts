import { etagMismatch, notFound } from '../base/index.ts'
import {
  deleteIntegratedAccountRow as deleteRow,
  findIntegratedAccount,
  listIntegratedAccountIds,
  mapForeignKeyToInUse,
  type SecretStore,
  type Tx,
} from '../storage/index.ts'
import type { EnvironmentRef } from './integrated-account.ts'
import { accountSecretRef } from './secret-ref.ts'

/** Accounts that are removed by force per look. */
const DELETE_BATCH_SIZE = 500

/** Removes triggers, which belong to a room above this one. */
export interface AccountTriggers {
  /** Removes every trigger of the account with its schedule, and stops what runs for it. */
  deleteByAccount(tx: Tx, environmentId: string, integratedAccountId: string): Promise<void>
}

/** What removing accounts needs. */
export interface DeleteAccountDeps {
  readonly secrets: Pick<SecretStore, 'remove'>
  readonly triggers: AccountTriggers
}

/**
 * Disconnects an account and erases its credentials, and with `force` deletes its triggers. `tx` is a transaction.
 *
 * @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH; RESOURCE_IN_USE while it has triggers and `force` is not set
 */
export async function deleteIntegratedAccount(
  deps: DeleteAccountDeps,
  tx: Tx,
  { environmentId }: EnvironmentRef,
  input: { readonly id: string; readonly version?: number | undefined; readonly force?: boolean },
): Promise<void> {
  const { id, version, force = false } = input
  const account = await findIntegratedAccount(tx, environmentId, id)
  if (account === undefined) throw notFound('integrated_account', id)
  if (force) await deps.triggers.deleteByAccount(tx, environmentId, id)
  const why = 'triggers run for this account: delete them first, or set force to delete them with it'
  const remove = () => deleteRow(tx, environmentId, id, version)
  if (!(await mapForeignKeyToInUse({ type: 'integrated_account', id, why }, remove)))
    throw etagMismatch('integrated_account', id)
  await deps.secrets.remove(tx, accountSecretRef(account))
}

/** Removes, by force, every account of an installation. `tx` is a transaction. */
export async function deleteAccountsByInstallation(
  deps: DeleteAccountDeps,
  tx: Tx,
  environmentId: string,
  environmentIntegrationId: string,
): Promise<void> {
  for (;;) {
    const ids = await listIntegratedAccountIds(tx, environmentId, environmentIntegrationId, DELETE_BATCH_SIZE)
    for (const id of ids) await deleteIntegratedAccount(deps, tx, { environmentId }, { id, force: true })
    if (ids.length < DELETE_BATCH_SIZE) return
  }
}
