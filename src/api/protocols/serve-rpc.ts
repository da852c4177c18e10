import { Failure } from '../../base/index.ts'
import type { Exchange } from '../exchange.ts'
import type { Operation } from '../operation.ts'
import { unsupportedMediaType } from '../pipeline/media-type.ts'
import { rejectRequest, sendMethodNotAllowed } from '../pipeline/respond.ts'
import { serveStream, serveUnary } from '../pipeline/serve.ts'
import { createConnectGetProtocol } from './connect.ts'
import { protocolForContentType, RPC_CONTENT_TYPES } from './content-types.ts'

/** Serves an RPC by the protocol of its content type, or by a GET of Connect. */
export function serveRpc(exchange: Exchange, operation: Operation, query: string): void {
  const { method, headers } = exchange.request
  const canGet = operation.kind === 'unary' && operation.isSafe
  const protocol = protocolForContentType(headers['content-type'])
  if (canGet && (method === 'GET' || method === 'HEAD'))
    void serveUnary(exchange, operation, createConnectGetProtocol(query))
  else if (method !== 'POST') sendMethodNotAllowed(exchange, canGet ? ['GET', 'POST'] : ['POST'])
  else if (operation.kind === 'unary' && protocol?.unary !== undefined)
    void serveUnary(exchange, operation, protocol.unary)
  else if (operation.kind === 'server_streaming' && protocol?.stream !== undefined)
    void serveStream(exchange, operation, protocol.stream)
  else rejectContentType(exchange, operation)
}

function rejectContentType(exchange: Exchange, { kind }: Operation): void {
  const accepted = RPC_CONTENT_TYPES[kind === 'unary' ? 'unary' : 'stream']
  exchange.context.setHeader('accept-post', accepted)
  const contentType = exchange.request.headers['content-type']
  rejectRequest(exchange, unsupportedMediaType(contentType, `send one of the types ${accepted}`))
}

/** Tells whether a request has method and content type of a streaming RPC. */
export function takesRpc({ request: { method, headers } }: Exchange): boolean {
  return method === 'POST' && protocolForContentType(headers['content-type'])?.stream !== undefined
}

/** Tells whether a request without a route expects its error in the form of gRPC. */
export function isGrpcRequest({ request: { headers } }: Exchange): boolean {
  return headers['content-type']?.startsWith('application/grpc') === true
}

/**
 * Sends UNIMPLEMENTED as gRPC does; a client that finds no status in the trailers reports a broken connection.
 *
 * @param near the end of the message: a name that was probably meant
 */
export function sendUnknownRpc(exchange: Exchange, near: string): void {
  exchange.protocol = protocolForContentType(exchange.request.headers['content-type'])?.unary ?? exchange.protocol
  rejectRequest(exchange, new Failure('ROUTE_NOT_FOUND', `there is no such RPC${near}`))
}
