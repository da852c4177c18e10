import type { Tx } from '../database/index.ts'
import { appendEvents, type EventType } from '../events/index.ts'
import type { EnvironmentIntegrationRecord } from './sql/installations.ts'

/** Records an event about an installation. The payload leaves out the override, which may be large and holds secrets. */
export async function recordInstallationEvent(
  tx: Tx,
  type: Extract<EventType, `environment_integration:${string}`>,
  installation: EnvironmentIntegrationRecord,
): Promise<void> {
  const { id, environmentId, integrationId, showInCatalog, isEnabled, clientSecretExpiresAt } = installation
  const payload = {
    id,
    environment_id: environmentId,
    integration_id: integrationId,
    show_in_catalog: showInCatalog,
    is_enabled: isEnabled,
    ...(clientSecretExpiresAt === null ? {} : { client_secret_expires_at: clientSecretExpiresAt.toISOString() }),
  }
  await appendEvents(tx, [{ environmentId, type, subjectId: id, payload }])
}
