import { backoffMs, type Clock } from '../base/index.ts'
import { ServerAway } from '../client/index.ts'
import type { Logger } from '../telemetry/index.ts'
import { CALL_TIMEOUT_MS, RETRY_SERVICE } from './patience.ts'
import { ownRefusalFrom } from './refusal.ts'
import type { Service } from './service.ts'

/** What the service calls a daemon, and what it expects of it. */
export interface Registration {
  readonly daemonId: string
  readonly heartbeatMs: number
  readonly leaseMs: number
}

/** How a daemon introduces itself. */
export interface Introduction {
  readonly groupKey: string
  readonly label: string
  readonly version: string
  readonly regions: readonly string[]
}

/** What registering needs. */
export interface RegisterDeps {
  readonly service: Pick<Service, 'daemons'>
  readonly clock: Clock
  /** A number in [0, 1). */
  readonly random: () => number
  readonly logger: Logger
}

/** Introduces the daemon, as often as it takes until the service is there. @throws what the service refuses */
export async function register(
  { service, clock, random, logger }: RegisterDeps,
  { groupKey, label, version, regions }: Introduction,
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
      const refusal = ownRefusalFrom(error)
      if (!(refusal instanceof ServerAway) || signal.aborted) throw refusal
      if (failures === 1) logger.warn({ error: refusal.message }, 'the service is away, the daemon waits for it')
      await clock.sleep(Math.max(refusal.afterMs, backoffMs(RETRY_SERVICE, failures, random)), signal)
    }
  }
}
