import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import { Failure } from '../../foundation/base/index.ts'
import { applyCors, type CorsOrigins } from './cors.ts'
import type { ServerContext } from './exchange.ts'
import { type Exchange, openExchange } from './exchange.ts'
import { type HttpRouter, serveHttpRoute } from './http/routes.ts'
import type { SuggestPath } from './near-path.ts'
import type { Operation } from './operation.ts'
import { rejectRequest, sendMethodNotAllowed, sendOptions } from './pipeline/respond.ts'
import { serveUnary } from './pipeline/serve.ts'
import type { RestBinding } from './rest/request.ts'
import { createRestProtocol, restErrors } from './rest/rest.ts'
import type { PathRouter } from './rest/router.ts'
import { isGrpcRequest, type RpcServer } from './rpc/serve-rpc.ts'

/** Everything a request can lead to. */
export interface Routes {
  readonly operations: ReadonlyMap<string, Operation>
  readonly rest: PathRouter<RestBinding>
  readonly http: HttpRouter
  readonly suggestPath: SuggestPath
  readonly rpc: RpcServer
  /** Origins whose pages may call all of these. */
  readonly corsOrigins: CorsOrigins
}

/** A request as one of Node's two HTTP servers hands it out. */
type NodeRequest = IncomingMessage | Http2ServerRequest
/** The response that goes with a `NodeRequest`. */
type NodeResponse = ServerResponse | Http2ServerResponse

/** Takes a request of either HTTP version. */
export type Dispatch = (request: NodeRequest, response: NodeResponse) => void

/**
 * Routes each request: an RPC by its path, then an HTTP route, then REST. A request that leads nowhere gets an error in
 * the protocol it came in.
 */
export function createDispatch(server: ServerContext, routes: Routes): Dispatch {
  const { operations, rpc, corsOrigins } = routes
  return (request, response) => {
    const exchange = openExchange(server, request, response, restErrors)
    const preflight = applyCors(corsOrigins, exchange)
    if (preflight !== undefined) return sendOptions(exchange, preflight)
    const [path, query] = splitUrl(request.url ?? '/', server.basePath)
    const operation = operations.get(path)
    if (operation !== undefined) rpc.serve(exchange, operation, query)
    else if (isGrpcRequest(exchange)) rpc.rejectUnknown(exchange, routes.suggestPath(path))
    else if (!serveHttpPath(exchange, routes, path, query)) serveRest(exchange, routes, path, query)
  }
}

/** Serves the HTTP route at the path; false when there is none. */
function serveHttpPath(exchange: Exchange, { http }: Routes, path: string, query: string): boolean {
  const here = http(path)
  if (here.length === 0) return false
  const { method } = exchange.request
  // HEAD is GET without the body.
  const route = here.find(({ verbs }) => verbs.includes(method === 'HEAD' ? 'GET' : (method ?? '')))
  if (route !== undefined) void serveHttpRoute(exchange, route, path, query)
  else
    sendMethodNotAllowed(
      exchange,
      here.flatMap((candidate) => candidate.verbsAt?.(path) ?? candidate.verbs),
    )
  return true
}

function serveRest(exchange: Exchange, { rest, suggestPath }: Routes, path: string, query: string): void {
  const match = rest.match(exchange.request.method ?? '', path)
  switch (match.kind) {
    case 'found': {
      const { target: binding, variables } = match
      void serveUnary(exchange, binding.operation, createRestProtocol({ binding, variables, query }))
      return
    }
    case 'other_verb':
      sendMethodNotAllowed(exchange, match.allow)
      return
    case 'unknown':
      rejectRequest(exchange, new Failure('ROUTE_NOT_FOUND', `there is no such path${suggestPath(path)}`))
  }
}

/**
 * Path and query of a request target. An absolute one (`http://host/path`), as proxies send it, is cut to its path; the path of the
 * public address, which some proxies pass on and others remove, is no part of it. Those that remove `/pb` and add `/` leave two slashes.
 */
function splitUrl(url: string, basePath: string): readonly [path: string, query: string] {
  const target = url.startsWith('/') ? url : url.replace(/^[a-z]+:\/\/[^/?]*/i, '')
  const mark = target.indexOf('?')
  const [path, query] = mark === -1 ? [target, ''] : [target.slice(0, mark), target.slice(mark + 1)]
  const own = basePath !== '' && path.startsWith(`${basePath}/`) ? path.slice(basePath.length) : path
  return [own.startsWith('//') ? own.replace(/^\/+/, '/') : own, query]
}
