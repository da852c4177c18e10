import { etagMismatch, notFound } from '../../foundation/base/index.ts'
import { type Db, mapForeignKeyToInUse, type Tx } from '../../foundation/database/index.ts'
import { startTask, type TaskKind } from '../../foundation/queue/index.ts'
import type { SecretStore } from '../../foundation/secrets/index.ts'
import type { EnvironmentScope } from '../tenancy/sql/environments.ts'
import { recordInstallationEvent } from './installation-events.ts'
import {
  deleteEnvironmentIntegrationRow as deleteRow,
  type EnvironmentIntegrationRecord,
  hideInstallation,
  hideInstallationsOf,
  type InstallationsOwner,
  lockEnvironmentIntegration,
  showHiddenInstallation,
  showNextInstallation,
} from './sql/installations.ts'
import { overrideSecretRef } from './stored-config.ts'

/** Accounts that a call deletes with their installation, some 7 statements each; the others are deleted by a task. */
const DELETED_AT_ONCE = 50
/** Installations that a call or step deletes with their environment or integration, if they have few accounts. */
const INSTALLATIONS_AT_ONCE = 20
/** Accounts that a step of the task deletes: about half a second. */
const DELETED_PER_STEP = 100
/** Name of the task in the contract. */
const DELETION_KIND = 'delete_environment_integration'

/** Deletes accounts, which belong to a module above this one. */
export interface AccountCascade {
  /**
   * Deletes accounts of the installation with their credentials, triggers and runs.
   *
   * @param limit how many at most; absent: all
   * @returns how many
   */
  deleteByInstallation(tx: Tx, environmentId: string, environmentIntegrationId: string, limit?: number): Promise<number>
  /** Stops the runs of all accounts of the installations at their next page. */
  stopByInstallations(tx: Tx, environmentIntegrationIds: readonly string[]): Promise<void>
}

/** What deleting installations needs. */
export interface InstallationDeleteDeps {
  readonly secrets: Pick<SecretStore, 'remove'>
  readonly accounts: AccountCascade
}

/**
 * Deletes an installation with its secrets, and with `force` its accounts: the first of them now, where there are more the others
 * by a task. From the commit on nothing finds it or an account of it, and the integration may be installed again.
 *
 * @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH; RESOURCE_IN_USE while it has accounts and `force` is not set; RATE_LIMITED as
 * `startTask`
 */
export async function deleteEnvironmentIntegration(
  deps: InstallationDeleteDeps,
  tx: Tx,
  { environmentId }: Pick<EnvironmentScope, 'environmentId'>,
  input: { readonly id: string; readonly version?: number | undefined; readonly force?: boolean },
): Promise<void> {
  const { id, version, force = false } = input
  const stored = await lockEnvironmentIntegration(tx, environmentId, id)
  if (stored === undefined) throw notFound('environment_integration', id)
  if (version !== undefined && version !== stored.version) throw etagMismatch('environment_integration', id)
  if (!force) return await deleteWithoutAccounts(deps, tx, stored)
  await deps.accounts.stopByInstallations(tx, [stored.id])
  const deleted = await deps.accounts.deleteByInstallation(tx, environmentId, stored.id, DELETED_AT_ONCE)
  if (deleted < DELETED_AT_ONCE) return await deleteWithoutAccounts(deps, tx, stored)
  await hideInstallation(tx, stored)
  await startTask(tx, { environmentId, kind: DELETION_KIND, params: { environment_integration_id: stored.id } })
  await recordInstallationEvent(tx, 'environment_integration:deleted', stored)
}

/** @throws Failure RESOURCE_IN_USE while it has accounts */
async function deleteWithoutAccounts(
  deps: InstallationDeleteDeps,
  tx: Tx,
  stored: EnvironmentIntegrationRecord,
): Promise<void> {
  await deleteRowAndSecrets(deps, tx, stored)
  await recordInstallationEvent(tx, 'environment_integration:deleted', stored)
}

async function deleteRowAndSecrets(
  deps: InstallationDeleteDeps,
  tx: Db,
  stored: EnvironmentIntegrationRecord,
): Promise<void> {
  const { environmentId, id } = stored
  const why = 'accounts are connected through this installation: delete them first, or set force to delete them with it'
  await mapForeignKeyToInUse({ type: 'environment_integration', id, why }, () => deleteRow(tx, environmentId, id))
  await deps.secrets.remove(tx, overrideSecretRef(stored))
}

/** Deletes the accounts of a deleted installation in batches, and then what is left of it. */
export function installationDeletionTask(deps: InstallationDeleteDeps): TaskKind {
  return {
    kind: DELETION_KIND,
    async step(tx, { environmentId, params }) {
      const id = String(params.environment_integration_id)
      const stored = await showHiddenInstallation(tx, { environmentId, id })
      // Its environment or integration was deleted meanwhile, and everything of it.
      if (stored === undefined) return { done: 0, cursor: null }
      const deleted = await deps.accounts.deleteByInstallation(tx, environmentId, id, DELETED_PER_STEP)
      const isOver = deleted < DELETED_PER_STEP
      if (isOver) await deleteRowAndSecrets(deps, tx, stored)
      else await hideInstallation(tx, stored)
      return { done: deleted, cursor: isOver ? null : id, counts: { integrated_accounts: deleted } }
    },
  }
}

/**
 * Deletes some of the installations of an environment or integration with their accounts, also those that are hidden: as much as
 * a step of a task or a call may.
 *
 * @returns whether there are no more
 */
export async function deleteSomeInstallations(
  deps: InstallationDeleteDeps,
  tx: Tx,
  of: InstallationsOwner,
): Promise<boolean> {
  let left = DELETED_AT_ONCE
  for (let count = 0; count < INSTALLATIONS_AT_ONCE; count++) {
    const stored = await showNextInstallation(tx, of)
    if (stored === undefined) return true
    left -= await deps.accounts.deleteByInstallation(tx, stored.environmentId, stored.id, left)
    if (left <= 0) {
      if (stored.wasHidden) await hideInstallation(tx, stored)
      return false
    }
    await deleteRowAndSecrets(deps, tx, stored)
    if (!stored.wasHidden) await recordInstallationEvent(tx, 'environment_integration:deleted', stored)
  }
  return false
}

/** Hides the installations of environments or integrations that are deleted, and stops the runs of their accounts. */
export async function hideInstallations(
  deps: InstallationDeleteDeps,
  tx: Tx,
  column: 'environment_id' | 'integration_id',
  ownerIds: readonly string[],
): Promise<readonly EnvironmentIntegrationRecord[]> {
  const hidden = await hideInstallationsOf(tx, column, ownerIds)
  await deps.accounts.stopByInstallations(
    tx,
    hidden.map(({ id }) => id),
  )
  return hidden
}
