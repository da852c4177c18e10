import type { Interceptor, Transport } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'

/** Address of the server and credentials for it. */
export interface ServerAddress {
  readonly url: string
  readonly token: string
  /** Environment to act in, for a token of a team. */
  readonly environmentId?: string | undefined
}

/** Largest message: a page of a list, whose size the upstream decides. */
const MESSAGE_BYTES_MAX = 64 * 1024 * 1024

/**
 * Connect transport with keep-alive connections, opened at the first call.
 *
 * Binary protobuf: a page is one JSON text in it (`as_json_text`), which costs a fifth of the same records as
 * `google.protobuf.Value` and half of a text escaped inside JSON. HTTP/1.1: it passes every proxy in front of a server and is
 * as fast as HTTP/2 here, whose calls share one flow-control window: pages that wait for a slow store would fill it, and
 * heartbeats would wait behind them.
 */
export function connectTransport({ url, token, environmentId }: ServerAddress): Transport {
  const authorise: Interceptor = (next) => (request) => {
    request.header.set('authorization', `Bearer ${token}`)
    if (environmentId !== undefined) request.header.set('patchbay-environment', environmentId)
    return next(request)
  }
  return createConnectTransport({
    baseUrl: url,
    httpVersion: '1.1',
    useBinaryFormat: true,
    interceptors: [authorise],
    readMaxBytes: MESSAGE_BYTES_MAX,
  })
}
