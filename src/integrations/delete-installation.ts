import { etagMismatch, Failure, notFound } from '../base/index.ts'
import { mapForeignKeyToInUse, type Tx } from '../database/index.ts'
import type { SecretStore } from '../secrets/index.ts'
import type { EnvironmentScope } from '../tenancy/index.ts'
import { recordInstallationEvent } from './installation-events.ts'
import {
  deleteEnvironmentIntegrationRow as deleteRow,
  findEnvironmentIntegration,
  listInstallationsOf,
  selectEnvironmentIntegrations,
} from './sql/installations.ts'
import type { IntegrationRecord } from './sql/integrations.ts'
import { overrideSecretRef } from './stored-config.ts'

/** Installations that are read per statement. */
const DELETE_BATCH_SIZE = 100

/** Deletes accounts, which belong to a module above this one. */
export interface AccountCascade {
  /** Deletes every account of the installation with its credentials, triggers and runs. */
  deleteByInstallation(tx: Tx, environmentId: string, environmentIntegrationId: string): Promise<void>
}

/** What deleting installations needs. */
export interface InstallationDeleteDeps {
  readonly secrets: Pick<SecretStore, 'remove'>
  readonly accounts: AccountCascade
}

/**
 * Deletes an installation with its secrets, and with `force` its accounts. `tx` is a transaction.
 *
 * @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH; RESOURCE_IN_USE while it has accounts and `force` is not set
 */
export async function deleteEnvironmentIntegration(
  deps: InstallationDeleteDeps,
  tx: Tx,
  { environmentId }: Pick<EnvironmentScope, 'environmentId'>,
  input: { readonly id: string; readonly version?: number | undefined; readonly force?: boolean },
): Promise<void> {
  const { id, version, force = false } = input
  const stored = await findEnvironmentIntegration(tx, environmentId, id)
  if (stored === undefined) throw notFound('environment_integration', id)
  if (force) await deps.accounts.deleteByInstallation(tx, environmentId, id)
  const why = 'accounts are connected through this installation: delete them first, or set force to delete them with it'
  const remove = () => deleteRow(tx, environmentId, id, version)
  if (!(await mapForeignKeyToInUse({ type: 'environment_integration', id, why }, remove)))
    throw etagMismatch('environment_integration', id)
  await deps.secrets.remove(tx, overrideSecretRef(stored))
  await recordInstallationEvent(tx, 'environment_integration:deleted', stored)
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
  for (;;) {
    const found = await listInstallationsOf(tx, integration.id, DELETE_BATCH_SIZE)
    for (const { environmentId, id, teamId } of found) {
      if (teamId !== integration.teamId) throw installedElsewhere(integration.id)
      await deleteEnvironmentIntegration(deps, tx, { environmentId }, { id, force: true })
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
  for (;;) {
    const page = { before: undefined, limit: DELETE_BATCH_SIZE }
    const found = await selectEnvironmentIntegrations(tx, environmentId, {}, page)
    for (const { id } of found) await deleteEnvironmentIntegration(deps, tx, { environmentId }, { id, force: true })
    if (found.length < DELETE_BATCH_SIZE) return
  }
}

function installedElsewhere(id: string): Failure {
  const message =
    'another team has this integration installed, and force does not reach them: set sharing to deny instead'
  return new Failure('RESOURCE_IN_USE', message, { resource: { type: 'integration', id } })
}
