import type { Interceptor, Transport } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'

/** Where the server is, and as whom to call it. */
export interface ServerAddress {
  readonly url: string
  readonly token: string
  /** The environment, for a token of a team. */
  readonly environmentId?: string | undefined
}

/** What the pages of a list may come to; the records on them are the third party's. */
const MESSAGE_BYTES_MAX = 64 * 1024 * 1024

/**
 * The way to a server; connections are made when they are needed, and kept.
 *
 * Connect with protobuf: a page travels as one text of JSON within it (`as_json_text`), which costs a fifth of what the same
 * records cost as `google.protobuf.Value`, in JSON or in protobuf, and half of a text that is escaped inside JSON. HTTP/1.1, which passes through whatever stands before a
 * server and is as fast as HTTP/2 here: pages that wait for a slow store fill the window that all calls of an HTTP/2
 * connection share, and heartbeats must not wait behind them.
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
