import { deleteCallLogOfEnvironment } from './call-log/index.ts'
import { deleteDeliveriesOfEnvironment } from './deliveries/index.ts'
import { deleteEventsOfEnvironment } from './events/index.ts'
import { deleteInboundOfEnvironment } from './inbound-webhooks/index.ts'
import {
  assertIntegrationsDeletable,
  deleteIntegrationsOfTeam,
  deleteSomeInstallations,
  hideInstallations,
  hideIntegrationsOfTeam,
  type InstallationDeleteDeps,
  startDeletion,
} from './integrations/index.ts'
import { deleteLinkSessionsOfEnvironment } from './link-sessions/index.ts'
import { deleteRemainsOfEnvironment } from './runs/index.ts'
import type { SecretStore } from './secrets/index.ts'
import { cancelTasksOfEnvironments, deleteTasksOfEnvironment } from './tasks/index.ts'
import type { CascadeDelete } from './tenancy/index.ts'
import { deleteToolServersOfEnvironment } from './tool-servers/index.ts'
import { deleteMappingsOfEnvironment } from './unified-models/index.ts'
import { disableWebhooksOfEnvironments } from './webhooks/index.ts'

/** What an environment holds besides installations, in the order in which it is deleted. */
const DELETE_FROM_ENVIRONMENT = [
  deleteMappingsOfEnvironment,
  deleteRemainsOfEnvironment,
  deleteDeliveriesOfEnvironment,
  deleteInboundOfEnvironment,
  deleteEventsOfEnvironment,
  deleteToolServersOfEnvironment,
  deleteCallLogOfEnvironment,
  deleteLinkSessionsOfEnvironment,
]

/** Deletes and hides what teams and environments hold, over all modules. */
export function createContents(
  integrations: InstallationDeleteDeps & { readonly secrets: Pick<SecretStore, 'destroyKeys'> },
): CascadeDelete {
  return {
    async deleteByEnvironment(tx, environmentId) {
      if (!(await deleteSomeInstallations(integrations, tx, { environment_id: environmentId }))) return false
      for (const deleteSome of DELETE_FROM_ENVIRONMENT) if (!(await deleteSome(tx, environmentId))) return false
      await deleteTasksOfEnvironment(tx, environmentId)
      return true
    },
    async hideByEnvironments(tx, ids) {
      await hideInstallations(integrations, tx, 'environment_id', ids)
      await disableWebhooksOfEnvironments(tx, ids)
      await cancelTasksOfEnvironments(tx, ids)
    },
    deleteIntegrationsOfTeam: deleteIntegrationsOfTeam.bind(undefined, integrations),
    hideIntegrationsOfTeam,
    assertIntegrationsDeletable,
    startDeletion,
    destroyKeys: (tx, ownerId) => integrations.secrets.destroyKeys(tx, ownerId),
  }
}
