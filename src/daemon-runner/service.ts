import { type Client, createClient } from '@connectrpc/connect'
import { DaemonService } from '../../gen/patchbay/v1/daemon_service_pb.ts'
import { ProxyService } from '../../gen/patchbay/v1/proxy_service_pb.ts'
import type { BackoffPolicy } from '../base/index.ts'
import { connectTransport, type ServerAddress } from '../client/index.ts'

/** How often a service that is away is asked again: often enough that a restart costs little of a lease. */
export const SERVICE_RETRY_POLICY: BackoffPolicy = { baseMs: 200, factor: 2, maxMs: 5_000, jitterFloor: 0.5 }

/** A call that is not a list or a wait is over by then, or is asked again. */
export const CALL_TIMEOUT_MS = 10_000

/** The service as a daemon sees it. */
export interface ServiceClients {
  readonly daemons: Client<typeof DaemonService>
  readonly proxy: Client<typeof ProxyService>
}

/** Clients of the two services a daemon uses. */
export function connectService(address: ServerAddress): ServiceClients {
  const transport = connectTransport(address)
  return { daemons: createClient(DaemonService, transport), proxy: createClient(ProxyService, transport) }
}
