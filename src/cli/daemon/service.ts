import { type Client, createClient } from '@connectrpc/connect'
import { DaemonService } from '../../../gen/patchbay/v1/daemon_service_pb.ts'
import { ProxyService } from '../../../gen/patchbay/v1/proxy_service_pb.ts'
import { UnifiedService } from '../../../gen/patchbay/v1/unified_service_pb.ts'
import type { BackoffPolicy } from '../../foundation/base/index.ts'
import { connectTransport, type ServerAddress } from '../client/transport.ts'

/** Backoff of calls to a service that is unavailable: short enough that a restart costs little of a lease. */
export const SERVICE_RETRY_POLICY: BackoffPolicy = { baseMs: 200, factor: 2, maxMs: 5_000, jitterFloor: 0.5 }

/** Clients of the services that a daemon calls. */
export interface ServiceClients {
  readonly daemons: Client<typeof DaemonService>
  readonly proxy: Client<typeof ProxyService>
  readonly unified: Client<typeof UnifiedService>
}

/** Connects when the first call is made. */
export function connectService(address: ServerAddress): ServiceClients {
  const transport = connectTransport(address)
  return {
    daemons: createClient(DaemonService, transport),
    proxy: createClient(ProxyService, transport),
    unified: createClient(UnifiedService, transport),
  }
}
