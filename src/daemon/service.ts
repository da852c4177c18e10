import { type Client, createClient } from '@connectrpc/connect'
import { DaemonService } from '../../gen/patchbay/v1/daemon_service_pb.ts'
import { ProxyService } from '../../gen/patchbay/v1/proxy_service_pb.ts'
import { connectTransport, type ServerAddress } from '../client/index.ts'

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
