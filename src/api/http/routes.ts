import type { StatusCode } from '../../base/index.ts'
import type { Access } from '../caller.ts'
import type { Exchange } from '../exchange.ts'
import type { ApiLimits } from '../limits.ts'
import { authenticate } from '../pipeline/authenticate.ts'
import { startDeadline } from '../pipeline/deadline.ts'
import { completeExchange, sendError } from '../pipeline/respond.ts'
import { acquireStreamSlot, type ServerContext } from '../pipeline/server-context.ts'
import { restErrors } from '../rest/rest.ts'

/**
 * An HTTP endpoint beside the contract: documents, metrics, raw passthrough, inbound webhooks. It shares the gate, the
 * deadline and the error answers of the pipeline; body and answer are its own.
 */
export interface HttpRoute {
  /** HTTP verbs; GET includes HEAD. */
  readonly verbs: readonly string[]
  /** Those of `verbs` that a path below the prefix takes, for the header `Allow`; absent: all. */
  verbsAt?(path: string): readonly string[]
  /** The whole path, or with `isPrefix` its beginning. */
  readonly path: string
  readonly isPrefix?: boolean
  readonly access: Access
  /** Deadline when the client names none; absent: none. */
  readonly deadlineDefaultMs?: number
  /** Writes the answer with `call.answerHeaders` among its headers; a `Failure` thrown before that becomes a REST error. */
  handle(exchange: HttpExchange): Promise<void>
}

/** What a plain route works with. */
export interface HttpExchange extends Exchange {
  /** Of the request, not decoded. */
  readonly path: string
  /** The text after `?`, or empty. */
  readonly query: string
  readonly limits: ApiLimits
}

/** Finds the routes of a path. */
export type HttpRouter = (path: string) => readonly HttpRoute[]

const NO_ROUTES: readonly HttpRoute[] = []

/** Routes are found by exact path first, then by the longest prefix. Routes of one path differ in their verbs. */
export function createHttpRouter(routes: readonly HttpRoute[]): HttpRouter {
  const exact = Map.groupBy(
    routes.filter(({ isPrefix }) => isPrefix !== true),
    ({ path }) => path,
  )
  const prefixes = Map.groupBy(
    routes.filter(({ isPrefix }) => isPrefix === true),
    ({ path }) => path,
  )
  const longestFirst = [...prefixes].sort(([one], [other]) => other.length - one.length)
  return (path) => exact.get(path) ?? longestFirst.find(([prefix]) => path.startsWith(prefix))?.[1] ?? NO_ROUTES
}

/** Serves one request of a plain route. Never rejects. */
export async function serveHttpRoute(
  core: ServerContext,
  route: HttpRoute,
  exchange: Exchange,
  { path, query }: Pick<HttpExchange, 'path' | 'query'>,
): Promise<void> {
  const { call } = exchange
  const { limits } = core
  let outcome: StatusCode | 'OK' = 'OK'
  try {
    startDeadline(call, { defaultMs: route.deadlineDefaultMs, maxMs: limits.deadlineMaxMs })
    await call.raceInterrupt(runHttpRoute(core, route, { ...exchange, path, query, limits }))
  } catch (error) {
    outcome = sendError(core, route.path, restErrors, exchange, error).code
  }
  completeExchange(core, route.path, restErrors, exchange, outcome)
}

async function runHttpRoute(core: ServerContext, route: HttpRoute, exchange: HttpExchange): Promise<void> {
  await authenticate(core.gate, route.access, exchange.call)
  if (route.access !== 'public') acquireStreamSlot(core, route.access, exchange.call)
  await route.handle(exchange)
}

/** A route that serves one JSON document, readable by anyone. */
export function documentRoute(path: string, document: unknown): HttpRoute {
  const body = Buffer.from(JSON.stringify(document))
  return {
    verbs: ['GET'],
    path,
    access: 'public',
    async handle({ request, response, call }) {
      const headers = { ...call.responseHeaders, 'content-type': 'application/json', 'content-length': body.length }
      response.writeHead(200, headers)
      response.end(request.method === 'HEAD' ? undefined : body)
    },
  }
}
