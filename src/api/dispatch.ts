import { Failure } from '../base/index.ts'
import type { NodeRequest, NodeResponse, ServeDuplex } from './connect-server.ts'
import { applyCors, type CorsOrigins } from './cors.ts'
import { type Exchange, openExchange } from './exchange.ts'
import { type HttpRouter, serveHttpRoute } from './http/routes.ts'
import type { Operation } from './operation.ts'
import { allowHeader, methodNotAllowed } from './pipeline/errors.ts'
import type { Protocol } from './pipeline/protocol.ts'
import { completeExchange, sendError } from './pipeline/respond.ts'
import { serveUnary } from './pipeline/serve-unary.ts'
import type { ServerContext } from './pipeline/server-context.ts'
import { createConnectGetProtocol } from './protocols/connect.ts'
import { protocolForContentType, RPC_CONTENT_TYPES, unsupportedMediaType } from './protocols/content-types.ts'
import { serveStream } from './protocols/serve-stream.ts'
import { createRestProtocol, type RestBinding, restErrors } from './rest/rest.ts'
import type { PathRouter } from './rest/router.ts'

/** Everything a request can lead to. */
export interface Routes {
  readonly operations: ReadonlyMap<string, Operation>
  readonly rest: PathRouter<RestBinding>
  readonly plain: HttpRouter
  readonly serveDuplex: ServeDuplex
  /** Origins whose pages may call all of these. */
  readonly corsOrigins: CorsOrigins
}

/** Takes a request of either HTTP version. */
export type Dispatch = (request: NodeRequest, response: NodeResponse) => void

/** Names what was asked for in logs and metrics when it does not exist; never the client's text. */
const UNKNOWN = 'unknown'

/**
 * Leads each request to what serves it: an RPC path by its content type, then a plain route, then REST. What leads
 * nowhere is refused in the protocol it came in.
 */
export function createDispatch(
  core: ServerContext,
  { operations, plain, rest, serveDuplex, corsOrigins }: Routes,
): Dispatch {
  return (request, response) => {
    const exchange = openExchange(core.openExchanges, request, response)
    const preflight = applyCors(corsOrigins, exchange)
    if (preflight !== undefined) return sendOptions(core, exchange, preflight)
    const [path, query] = splitUrl(request.url ?? '/')
    const operation = operations.get(path)
    if (operation?.kind === 'duplex' && isDuplexRequest(request)) serveDuplex(exchange, request, response)
    else if (operation !== undefined) void serveRpc(core, operation, exchange, query)
    else if (request.headers['content-type']?.startsWith('application/grpc')) void sendUnknownRpc(core, exchange)
    else void (servePlainPath(core, plain, exchange, path, query) ?? serveRest(core, rest, exchange, path, query))
  }
}

/** Tells whether the server of two-way streams takes the request; it refuses others without a reason. */
function isDuplexRequest({ method, headers }: NodeRequest): boolean {
  return method === 'POST' && protocolForContentType(headers['content-type'])?.stream !== undefined
}

function serveRpc(core: ServerContext, operation: Operation, exchange: Exchange, query: string): Promise<void> {
  const { method, headers } = exchange.request
  const wire = protocolForContentType(headers['content-type'])
  const canGet = operation.kind === 'unary' && operation.isSafe
  if (verbOf(exchange) === 'GET' && canGet)
    return serveUnary(core, operation, createConnectGetProtocol(query), exchange)
  if (method !== 'POST') return sendMethodNotAllowed(core, exchange, canGet ? ['GET', 'POST'] : ['POST'])
  if (operation.kind === 'unary' && wire?.unary !== undefined) return serveUnary(core, operation, wire.unary, exchange)
  if (operation.kind === 'stream' && wire?.stream !== undefined)
    return serveStream(core, operation, wire.stream, exchange)
  const accepted = RPC_CONTENT_TYPES[operation.kind === 'unary' ? 'unary' : 'stream']
  exchange.call.setHeader('accept-post', accepted)
  return sendErrorUnrouted(
    core,
    exchange,
    unsupportedMediaType(headers['content-type'], `send one of the types ${accepted}`),
  )
}

/** Answers in gRPC's own terms; a client that finds no status in the trailers reports a broken connection. */
function sendUnknownRpc(core: ServerContext, exchange: Exchange): Promise<void> {
  const wire = protocolForContentType(exchange.request.headers['content-type'])?.unary
  return sendErrorUnrouted(core, exchange, new Failure('ROUTE_NOT_FOUND', 'there is no such RPC'), wire)
}

/** Serves the plain route at the path; `undefined` when there is none. */
function servePlainPath(
  core: ServerContext,
  find: HttpRouter,
  exchange: Exchange,
  path: string,
  query: string,
): Promise<void> | undefined {
  const here = find(path)
  if (here.length === 0) return undefined
  const route = here.find(({ verbs }) => verbs.includes(verbOf(exchange)))
  if (route !== undefined) return serveHttpRoute(core, route, exchange, { path, query })
  return sendMethodNotAllowed(
    core,
    exchange,
    here.flatMap((candidate) => candidate.verbsAt?.(path) ?? candidate.verbs),
  )
}

function serveRest(
  core: ServerContext,
  router: PathRouter<RestBinding>,
  exchange: Exchange,
  path: string,
  query: string,
): Promise<void> {
  const match = router.match(exchange.request.method ?? '', path)
  switch (match.kind) {
    case 'found': {
      const { target: binding, variables } = match
      return serveUnary(core, binding.operation, createRestProtocol({ binding, variables, query }), exchange)
    }
    case 'other_verb':
      return sendMethodNotAllowed(core, exchange, match.allow)
    case 'unknown':
      return sendErrorUnrouted(core, exchange, new Failure('ROUTE_NOT_FOUND', 'there is no such path'))
  }
}

/** HEAD is GET without the body. */
function verbOf({ request: { method = '' } }: Exchange): string {
  return method === 'HEAD' ? 'GET' : method
}

/** 405 with the verbs that would do; OPTIONS asks for just that list. */
async function sendMethodNotAllowed(core: ServerContext, exchange: Exchange, verbs: readonly string[]): Promise<void> {
  const { request, call } = exchange
  if (request.method !== 'OPTIONS') return sendErrorUnrouted(core, exchange, methodNotAllowed(call, verbs))
  sendOptions(core, exchange, { allow: allowHeader(verbs) })
}

function sendOptions(core: ServerContext, exchange: Exchange, headers: Readonly<Record<string, string>>): void {
  exchange.response.writeHead(204, { ...exchange.call.responseHeaders, ...headers })
  exchange.response.end()
  completeExchange(core, 'options', restErrors, exchange, 'OK')
}

async function sendErrorUnrouted(
  core: ServerContext,
  exchange: Exchange,
  failure: Failure,
  wire: Protocol = restErrors,
): Promise<void> {
  sendError(core, UNKNOWN, wire, exchange, failure)
  completeExchange(core, UNKNOWN, wire, exchange, failure.code)
}

/** Path and query of a request target. An absolute one (`http://host/path`), as proxies send it, is cut to its path. */
function splitUrl(url: string): readonly [path: string, query: string] {
  const target = url.startsWith('/') ? url : url.replace(/^[a-z]+:\/\/[^/?]*/i, '')
  const mark = target.indexOf('?')
  return mark === -1 ? [target, ''] : [target.slice(0, mark), target.slice(mark + 1)]
}
