import { invalidFields } from '../../../foundation/base/index.ts'
import type { Access, BodyReading } from '../access.ts'
import type { Exchange, Protocol } from '../exchange.ts'
import type { Finding } from '../operation.ts'
import { type EntryRule, runRequest } from '../pipeline/run-operation.ts'
import { serve } from '../pipeline/serve.ts'

/**
 * An HTTP endpoint beside the contract. It has the authentication, deadline and errors of all requests; body and
 * response are its own.
 */
export type HttpRoute = HttpEndpoint & (PublicRoute | ScopedRoute)

/** No token is asked for, and so no scope. */
interface PublicRoute {
  readonly access: 'public'
  readonly scope?: undefined
}

interface ScopedRoute {
  readonly access: Exclude<Access, 'public'>
  /** The scope that an API token needs; undefined: what is called has one of its own. */
  readonly scope: string | undefined
}

interface HttpEndpoint {
  /** HTTP verbs; GET includes HEAD. */
  readonly verbs: readonly string[]
  /** Those of `verbs` that a path below the prefix takes, for the header `Allow`; absent: all. */
  verbsAt?(path: string): readonly string[]
  /** The whole path, or with `isPrefix` its beginning. */
  readonly path: string
  readonly isPrefix?: boolean
  /** `after_authentication`: by `access`, or by what `handle` does first. */
  readonly readsBody: BodyReading
  /** Counts every request against the limit of its client address; only where `access` is `public`, which has no token to count. */
  readonly isAddressLimited?: boolean
  /** Query parameters that are read as one value each: given twice they are rejected (INVALID_FIELD). */
  readonly singleParameters?: readonly string[]
  /** How errors are written; absent: as REST errors. */
  readonly errors?: Pick<Protocol, 'sendError'>
  /** Deadline when the client names none; absent: none. */
  readonly deadlineDefaultMs?: number
  /** Bytes that are drained of a body that was not read; absent: any number. */
  readonly drainBytesMax?: number
  /** Writes the response with `context.responseHeaders` among its headers; a `Failure` thrown before that is sent by `errors`. */
  handle(exchange: HttpExchange): Promise<void>
}

/** The exchange of an HTTP route. */
export interface HttpExchange extends Exchange {
  /** Of the request, not decoded. */
  readonly path: string
  /** The text after `?`, or empty. */
  readonly query: string
  /** The value of a parameter of the query; only of those that the route names as `singleParameters`. */
  parameter(name: string): string | undefined
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

/** Units of the rate limit for a request, as for most operations of the contract. */
const ROUTE_COST = 1

/** Serves one request of an HTTP route. Never rejects. */
export async function serveHttpRoute(exchange: Exchange, route: HttpRoute, path: string, query: string): Promise<void> {
  const { server } = exchange
  exchange.operationPath = route.path
  exchange.readsBody = route.readsBody
  if (route.drainBytesMax !== undefined) exchange.drainBytesMax = route.drainBytesMax
  if (route.errors !== undefined) exchange.protocol = { name: 'rest', sendError: route.errors.sendError }
  const rule = ruleOf(route, server.limits.deadlineMaxMs)
  await serve(
    exchange,
    () =>
      runRequest(exchange, rule, NO_BODY, async () => {
        const single = readSingleParameters(query, route.singleParameters ?? [])
        await route.handle({ ...exchange, path, query, parameter: (name) => single(name) })
      }),
    async () => {},
  )
}

/** Handlers of routes read the bodies themselves. */
const NO_BODY = async () => Buffer.alloc(0)

function ruleOf(route: HttpRoute, deadlineMaxMs: number): EntryRule {
  const { access, scope, isAddressLimited = false, deadlineDefaultMs } = route
  const isLasting = access !== 'public'
  return {
    access,
    scope,
    cost: ROUTE_COST,
    isAddressLimited,
    isLasting,
    takesSlot: isLasting || isAddressLimited,
    deadlineDefaultMs,
    deadlineMaxMs,
  }
}

/** @throws Failure INVALID_FIELD for a parameter that is given more than once */
function readSingleParameters(query: string, names: readonly string[]): (name: string) => string | undefined {
  const values = names.length === 0 || query === '' ? undefined : new URLSearchParams(query)
  const repeated = values === undefined ? [] : names.filter((name) => values.getAll(name).length > 1)
  if (repeated.length > 0) throw invalidFields(repeated.map(repeatedParameter))
  return (name) => {
    if (!names.includes(name)) throw new Error(`the route does not name the parameter ${name}`)
    return values?.get(name) ?? undefined
  }
}

function repeatedParameter(field: string): Finding {
  return { field, description: 'is given more than once', rule: 'duplicate_parameter' }
}

/** A route that serves one JSON document without a token. @param read called once, when it is first asked for */
export function documentRoute(path: string, read: () => unknown): HttpRoute {
  let body: Buffer | undefined
  return {
    verbs: ['GET'],
    path,
    access: 'public',
    readsBody: 'never',
    async handle({ request, response, context }) {
      body ??= Buffer.from(JSON.stringify(read()))
      const headers = { ...context.responseHeaders, 'content-type': 'application/json', 'content-length': body.length }
      response.writeHead(200, headers)
      response.end(request.method === 'HEAD' ? undefined : body)
    },
  }
}
