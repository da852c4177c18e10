import { backoffMs, type Clock } from '../base/index.ts'
import { ServerUnavailable } from '../client/index.ts'
import type { Logger } from '../telemetry/index.ts'
import { CALL_TIMEOUT_MS, SERVICE_RETRY_POLICY, type ServiceClients } from './service.ts'
import { daemonCallErrorFrom } from './service-errors.ts'

/** What the service calls a daemon, and what it expects of it. */
export interface Registration {
  readonly daemonId: string
  readonly heartbeatMs: number
  readonly leaseMs: number
}

/** How a daemon introduces itself. */
export interface RegistrationRequest {
  readonly groupKey: string
  readonly label: string
  readonly version: string
  readonly regions: readonly string[]
}

/** What registering needs. */
export interface RegisterDeps {
  readonly service: Pick<ServiceClients, 'daemons'>
  readonly clock: Clock
  /** A number in [0, 1). */
  readonly random: () => number
  readonly logger: Logger
}

/** Introduces the daemon, as often as it takes until the service is there. @throws what the service refuses */
export async function register(
  { service, clock, random, logger }: RegisterDeps,
  { groupKey, label, version, regions }: RegistrationRequest,
  signal: AbortSignal,
): Promise<Registration> {
  const request = { groupKey, label, version, regions: [...regions] }
  for (let failures = 1; ; failures++) {
    try {
      const answer = await service.daemons.registerDaemon(request, { timeoutMs: CALL_TIMEOUT_MS, signal })
      const { daemonId, heartbeatSeconds, leaseSeconds } = answer
      logger.info({ daemon_id: daemonId, group_key: groupKey }, 'the daemon is registered')
      return { daemonId, heartbeatMs: heartbeatSeconds * 1_000, leaseMs: leaseSeconds * 1_000 }
    } catch (error) {
      const refusal = daemonCallErrorFrom(error)
      if (!(refusal instanceof ServerUnavailable) || signal.aborted) throw refusal
      if (failures === 1) logger.warn({ error: refusal.message }, 'the service is away, the daemon waits for it')
      await clock.sleep(Math.max(refusal.afterMs, backoffMs(SERVICE_RETRY_POLICY, failures, random)), signal)
    }
  }
}
