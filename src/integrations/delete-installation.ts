import { etagMismatch, Failure, notFound } from '../base/index.ts'
import { mapForeignKeyToInUse, type Tx } from '../database/index.ts'
import type { SecretStore } from '../secrets/index.ts'
import { startTask, type TaskKind } from '../tasks/index.ts'
import type { EnvironmentScope } from '../tenancy/index.ts'
import { recordInstallationEvent } from './installation-events.ts'
import {
  deleteEnvironmentIntegrationRow as deleteRow,
  type EnvironmentIntegrationRecord,
  findEnvironmentIntegration,
  hideInstallation,
  listInstallationsOf,
  lockEnvironmentIntegration,
  selectEnvironmentIntegrations,
  showHiddenInstallation,
  showHiddenInstallations,
} from './sql/installations.ts'
import type { IntegrationRecord } from './sql/integrations.ts'
import { overrideSecretRef } from './stored-config.ts'

/** Installations that are read per statement. */
const DELETE_BATCH_SIZE = 100

/** Accounts that a call deletes with their installation, some 7 statements each; the others are deleted by a task. */
const DELETED_AT_ONCE = 50
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
  /** Stops the runs of all accounts of the installation at their next page. */
  stopByInstallation(tx: Tx, environmentId: string, environmentIntegrationId: string): Promise<void>
}

/** What deleting installations needs. */
export interface InstallationDeleteDeps {
  readonly secrets: Pick<SecretStore, 'remove'>
  readonly accounts: AccountCascade
}

/**
 * Deletes an installation with its secrets, and with `force` its accounts: the first of them now, where there are more the others
 * by a task. From the commit on nothing finds it or an account of it, and the integration may be installed again. `tx` is a
 * transaction.
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
  await deps.accounts.stopByInstallation(tx, environmentId, stored.id)
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
  tx: Tx,
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

/** Deletes an installation with all of its accounts in one transaction. */
async function deleteWhole(deps: InstallationDeleteDeps, tx: Tx, stored: EnvironmentIntegrationRecord): Promise<void> {
  await deps.accounts.deleteByInstallation(tx, stored.environmentId, stored.id)
  await deleteWithoutAccounts(deps, tx, stored)
}

/**
 * Deletes, by force, the installations of an integration in the environments of the team that owns it.
 *
 * @throws Failure RESOURCE_IN_USE when another team has it installed: its accounts are not the owner's to delete
 */
export async function deleteInstallationsOfIntegration(
  deps: InstallationDeleteDeps,
  tx: Tx,
  integration: Pick<IntegrationRecord, 'id' | 'teamId'>,
): Promise<void> {
  await showHiddenInstallations(tx, { integration_id: integration.id })
  for (;;) {
    const found = await listInstallationsOf(tx, integration.id, DELETE_BATCH_SIZE)
    for (const { environmentId, id, teamId } of found) {
      if (teamId !== integration.teamId) throw installedElsewhere(integration.id)
      const stored = await findEnvironmentIntegration(tx, environmentId, id)
      if (stored !== undefined) await deleteWhole(deps, tx, stored)
    }
    if (found.length < DELETE_BATCH_SIZE) return
  }
}

/** Deletes, by force, every installation of an environment. */
export async function deleteInstallationsOfEnvironment(
  deps: InstallationDeleteDeps,
  tx: Tx,
  environmentId: string,
): Promise<void> {
  await showHiddenInstallations(tx, { environment_id: environmentId })
  for (;;) {
    const page = { before: undefined, limit: DELETE_BATCH_SIZE }
    const found = await selectEnvironmentIntegrations(tx, environmentId, {}, page)
    for (const stored of found) await deleteWhole(deps, tx, stored)
    if (found.length < DELETE_BATCH_SIZE) return
  }
}

function installedElsewhere(id: string): Failure {
  const message =
    'another team has this integration installed, and force does not reach them: set sharing to deny instead'
  return new Failure('RESOURCE_IN_USE', message, { resource: { type: 'integration', id } })
}
