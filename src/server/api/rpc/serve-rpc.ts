import { Failure } from '../../../foundation/base/index.ts'
import type { Exchange } from '../exchange.ts'
import { readQuery } from '../messages/query-string.ts'
import type { Operation } from '../operation.ts'
import { unsupportedMediaType } from '../pipeline/media-type.ts'
import { completeExchange, rejectRequest, sendMethodNotAllowed } from '../pipeline/respond.ts'
import { serveBidiStream, serveStream, serveUnary } from '../pipeline/serve.ts'
import { connectJson, connectJsonStream, createConnectJsonGet } from './connect-json.ts'
import { ConnectCall, type ConnectHandlers } from './connect-node.ts'
import { formatOf, RPC_CONTENT_TYPES, type WireFormat } from './wire-format.ts'

/** Serves RPCs: those with JSON of Connect by this server's codec, all others by connect. */
export class RpcServer {
  readonly #handlers: ConnectHandlers

  constructor(handlers: ConnectHandlers) {
    this.#handlers = handlers
  }

  /** Serves an RPC in the format of its content type, or by a GET of Connect. */
  serve(exchange: Exchange, operation: Operation, query: string): void {
    const { method, headers } = exchange.request
    const canGet = operation.kind === 'unary' && operation.isSafe
    const format = formatOf(headers['content-type'])
    const kind = operation.kind === 'unary' ? 'unary' : 'stream'
    if (canGet && (method === 'GET' || method === 'HEAD')) this.#serveGet(exchange, operation, query)
    else if (method !== 'POST') sendMethodNotAllowed(exchange, canGet ? ['GET', 'POST'] : ['POST'])
    else if (format === undefined || !format.kinds.includes(kind)) rejectContentType(exchange, kind)
    else this.#servePost(exchange, operation, format)
  }

  /**
   * Sends UNIMPLEMENTED as gRPC does; a client that finds no status in the trailers reports a broken connection.
   *
   * @param near the end of the message: a name that was probably meant
   */
  rejectUnknown(exchange: Exchange, near: string): void {
    const format = formatOf(exchange.request.headers['content-type'])
    const [handler] = this.#handlers.values()
    if (format !== undefined && handler !== undefined) exchange.protocol = new ConnectCall(handler, format)
    rejectRequest(exchange, new Failure('ROUTE_NOT_FOUND', `there is no such RPC${near}`))
  }

  #servePost(exchange: Exchange, operation: Operation, format: WireFormat): void {
    // Proxies that buffer would hold back the messages.
    if (operation.kind !== 'unary') exchange.context.setHeader('x-accel-buffering', 'no')
    const isJson = format.protocol === 'connect' && !format.isBinary
    if (operation.kind === 'unary')
      void serveUnary(exchange, operation, isJson ? connectJson : this.#callOf(operation, format))
    else if (operation.kind === 'server_streaming')
      void serveStream(exchange, operation, isJson ? connectJsonStream : this.#callOf(operation, format))
    else if (exchange.request.httpVersionMajor < 2) rejectHttpVersion(exchange, operation)
    else void serveBidiStream(exchange, operation, this.#callOf(operation, format))
  }

  #serveGet(exchange: Exchange, operation: Operation & { readonly kind: 'unary' }, query: string): void {
    const isBinary = readQuery(query, []).some(([name, value]) => name === 'encoding' && value === 'proto')
    const format = isBinary ? formatOf('application/proto') : undefined
    const protocol = format === undefined ? createConnectJsonGet(query) : this.#callOf(operation, format, query)
    void serveUnary(exchange, operation, protocol)
  }

  #callOf({ path }: Operation, format: WireFormat, query?: string): ConnectCall {
    const handler = this.#handlers.get(path)
    if (handler === undefined) throw new Error(`${path} is no operation`)
    return new ConnectCall(handler, format, query)
  }
}

function rejectContentType(exchange: Exchange, kind: 'unary' | 'stream'): void {
  const accepted = RPC_CONTENT_TYPES[kind]
  exchange.context.setHeader('accept-post', accepted)
  const contentType = exchange.request.headers['content-type']
  rejectRequest(exchange, unsupportedMediaType(contentType, `send one of the types ${accepted}`))
}

/** Answers a two-way stream on HTTP/1.1, which no client can read while it writes. */
function rejectHttpVersion(exchange: Exchange, { path }: Operation): void {
  exchange.operationPath = path
  exchange.response.writeHead(505, { ...exchange.context.responseHeaders, connection: 'close' })
  exchange.response.end()
  completeExchange(exchange, 'UNIMPLEMENTED')
}

/** Tells whether a request without a route expects its error in the form of gRPC. */
export function isGrpcRequest({ request: { headers } }: Exchange): boolean {
  return headers['content-type']?.startsWith('application/grpc') === true
}
