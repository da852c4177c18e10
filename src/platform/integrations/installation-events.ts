import type { Tx } from '../../foundation/database/index.ts'
import { appendEvents } from '../outbox/append-events.ts'
import type { EventType } from '../outbox/catalog.ts'
import { payloadOf } from '../outbox/payload.ts'
import type { OverrideDifference } from './override-difference.ts'
import type { EnvironmentIntegrationRecord } from './sql/installations.ts'

/**
 * Records an event about an installation. The payload leaves out the override, which may be large and holds secrets; it names the
 * paths in it that changed, the hosts to which requests are sent since, or no longer, and whether the accounts have to be connected
 * again for that.
 */
export async function recordInstallationEvent(
  tx: Tx,
  type: Extract<EventType, `environment_integration:${string}`>,
  installation: EnvironmentIntegrationRecord,
  { paths, hostsAdded, hostsRemoved }: OverrideDifference = NO_CHANGE,
  endsCredentials = false,
): Promise<void> {
  const { id, environmentId, clientSecretExpiresAt } = installation
  const payload = installationPayload({
    ...installation,
    changedPaths: paths,
    hostsAdded,
    hostsRemoved,
    reauthorizesAccounts: endsCredentials,
    clientSecretExpiresAt: clientSecretExpiresAt ?? undefined,
  })
  await appendEvents(tx, [{ environmentId, type, subjectId: id, payload }])
}

const installationPayload = payloadOf('EnvironmentIntegrationEventPayload')
const NO_CHANGE: OverrideDifference = { paths: [], hostsAdded: [], hostsRemoved: [] }
