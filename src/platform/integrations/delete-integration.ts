import { etagMismatch, Failure, notFound } from '../../foundation/base/index.ts'
import { type Db, mapForeignKeyToInUse, type Tx } from '../../foundation/database/index.ts'
import { startServiceTask, type TaskKind } from '../../foundation/queue/index.ts'
import type { DeletionKind } from '../tenancy/environments.ts'
import { deleteSomeInstallations, hideInstallations, type InstallationDeleteDeps } from './delete-installation.ts'
import { recordInstallationEvent } from './installation-events.ts'
import { findInstalledElsewhere } from './sql/installations.ts'
import {
  deleteIntegrationRow,
  findDefinitionOf,
  hideIntegrations,
  type IntegrationRecord,
  listIntegrationIdsOfTeam,
  lockIntegration,
  lockIntegrationsOfTeam,
} from './sql/integrations.ts'
import { integrationSecretRef } from './stored-config.ts'

/** Integrations that a step of the deletion of their team deletes, if they have few accounts. */
const INTEGRATIONS_PER_STEP = 20

/**
 * Deletes an integration of the team with its grants and secrets, and with `force` its installations in the team's
 * environments with their accounts: where there are many, most of them by a task. From the commit on nothing finds it, and its
 * name is free.
 *
 * @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH; RESOURCE_IN_USE while it is installed and `force` is not set, and
 * even with `force` while another team has it installed, because their accounts are not the owner's to delete
 */
export async function deleteIntegration(
  deps: InstallationDeleteDeps,
  tx: Tx,
  teamId: string,
  input: { readonly id: string; readonly version?: number | undefined; readonly force?: boolean },
): Promise<void> {
  const { id, version, force = false } = input
  const stored = await lockIntegration(tx, id)
  if (stored?.teamId !== teamId) throw notFound('integration', id)
  if (version !== undefined && version !== stored.version) throw etagMismatch('integration', id)
  if (!force) return await deleteEmptied(deps, tx, stored)
  await assertNotInstalledElsewhere(tx, teamId, id)
  if (await deleteSomeInstallations(deps, tx, { integration_id: id })) return await deleteEmptied(deps, tx, stored)
  await hideIntegrations(tx, { id })
  const hidden = await hideInstallations(deps, tx, 'integration_id', [id])
  for (const each of hidden) await recordInstallationEvent(tx, 'environment_integration:deleted', each)
  await startDeletion(tx, 'delete_integration', id)
}

/** @throws Failure RESOURCE_IN_USE while it is installed */
async function deleteEmptied(
  deps: Pick<InstallationDeleteDeps, 'secrets'>,
  tx: Db,
  stored: IntegrationRecord,
): Promise<void> {
  const { id, teamId } = stored
  const why = 'the integration is installed: remove its installations first, or set force to delete them with it'
  await mapForeignKeyToInUse({ type: 'integration', id, why }, () => deleteIntegrationRow(tx, teamId, id))
  await deps.secrets.remove(tx, integrationSecretRef(stored))
}

/** Deletes a part of a deleted integration's installations, and at last its row; returns whether it is gone. */
export async function continueIntegrationDeletion(deps: InstallationDeleteDeps, tx: Tx, id: string): Promise<boolean> {
  const stored = await findDefinitionOf(tx, id)
  if (stored === undefined) return true
  if (!(await deleteSomeInstallations(deps, tx, { integration_id: id }))) return false
  await deleteEmptied(deps, tx, stored)
  return true
}

/** Deletes some integrations of a team by force; returns whether there are no more. */
export async function deleteIntegrationsOfTeam(deps: InstallationDeleteDeps, tx: Tx, teamId: string): Promise<boolean> {
  const ids = await listIntegrationIdsOfTeam(tx, teamId, INTEGRATIONS_PER_STEP)
  for (const id of ids) if (!(await continueIntegrationDeletion(deps, tx, id))) return false
  return ids.length < INTEGRATIONS_PER_STEP
}

/** Hides all integrations of a team that is deleted; their installations are hidden with its environments. */
export async function hideIntegrationsOfTeam(tx: Tx, teamId: string): Promise<void> {
  await hideIntegrations(tx, { team_id: teamId })
}

/** Locks the integrations of a team that is to be deleted. @throws Failure RESOURCE_IN_USE when another team has one installed */
export async function assertIntegrationsDeletable(tx: Tx, teamId: string): Promise<void> {
  await lockIntegrationsOfTeam(tx, teamId)
  await assertNotInstalledElsewhere(tx, teamId, null)
}

async function assertNotInstalledElsewhere(tx: Db, teamId: string, integrationId: string | null): Promise<void> {
  const id = await findInstalledElsewhere(tx, teamId, integrationId)
  if (id === undefined) return
  const message =
    'another team has this integration installed, and force does not reach them: set sharing to deny instead'
  throw new Failure('RESOURCE_IN_USE', message, { resource: { type: 'integration', id } })
}

/** Starts the task that finishes the deletion of a team, environment or integration. */
export async function startDeletion(tx: Tx, kind: DeletionKind, id: string): Promise<void> {
  await startServiceTask(tx, { ownerId: id, kind, params: { id } })
}

/** A task that finishes a deletion. @param continueDeletion deletes a part; returns whether that was the last */
export function deletionTask(kind: DeletionKind, continueDeletion: (tx: Tx, id: string) => Promise<boolean>): TaskKind {
  return {
    kind,
    async step(tx, { params }) {
      const id = String(params.id)
      return { done: 1, cursor: (await continueDeletion(tx, id)) ? null : id }
    },
  }
}
