import { cancelTasksOfEnvironments, deleteTasksOfEnvironment } from '../foundation/queue/index.ts'
import type { SecretStore } from '../foundation/secrets/index.ts'
import { deleteCallLogOfEnvironment } from '../platform/call-log/index.ts'
import { deleteCallHoursOfEnvironment } from '../platform/figures/index.ts'
import {
  assertIntegrationsDeletable,
  deleteIntegrationsOfTeam,
  deleteSomeInstallations,
  hideInstallations,
  hideIntegrationsOfTeam,
  type InstallationDeleteDeps,
  startDeletion,
} from '../platform/integrations/index.ts'
import { deleteLinkSessionsOfEnvironment } from '../platform/links/index.ts'
import { deleteEventsOfEnvironment } from '../platform/outbox/index.ts'
import type { CascadeDelete } from '../platform/tenancy/index.ts'
import { deleteMappingsOfEnvironment } from '../platform/unified-config/index.ts'
import { deleteRemainsOfEnvironment } from '../sync/runs/index.ts'
import { deleteToolServersOfEnvironment } from '../tools/servers/index.ts'
import { deleteInboundOfEnvironment } from '../webhooks/inbound/index.ts'
import { deleteDeliveriesOfEnvironment, disableWebhooksOfEnvironments } from '../webhooks/outbound/index.ts'

/** What an environment holds besides installations, in the order in which it is deleted. */
const DELETE_FROM_ENVIRONMENT = [
  deleteMappingsOfEnvironment,
  deleteRemainsOfEnvironment,
  deleteDeliveriesOfEnvironment,
  deleteInboundOfEnvironment,
  deleteEventsOfEnvironment,
  deleteToolServersOfEnvironment,
  deleteCallLogOfEnvironment,
  deleteCallHoursOfEnvironment,
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
