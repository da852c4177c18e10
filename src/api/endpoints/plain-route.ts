import type { StatusCode } from '../../base/index.ts'
import type { Access, Call } from '../call.ts'
import type { Exchange, HttpRequest, HttpResponse } from '../exchange.ts'
import { admit } from '../stages/admit.ts'
import type { Core } from '../stages/core.ts'
import { startDeadline } from '../stages/deadline.ts'
import { finish, refuse } from '../stages/finish.ts'
import { restRefusals } from '../wire/rest.ts'

/**
 * An HTTP endpoint beside the contract: documents, metrics, raw passthrough, inbound webhooks. It shares the gate, the
 * deadline and the error answers of the pipeline; body and answer are its own.
 */
export interface PlainRoute {
  /** HTTP verbs; GET includes HEAD. */
  readonly verbs: readonly string[]
  /** The whole path, or with `isPrefix` its beginning. */
  readonly path: string
  readonly isPrefix?: boolean
  readonly access: Access
  /** Deadline when the client names none; absent: none. */
  readonly deadlineDefaultMs?: number
  /** Writes the answer with `call.answerHeaders` among its headers; a `Failure` thrown before that becomes a REST error. */
  handle(exchange: PlainExchange): Promise<void>
}

/** What a plain route works with. */
export interface PlainExchange {
  readonly request: HttpRequest
  readonly response: HttpResponse
  readonly call: Call & { readonly answerHeaders: Readonly<Record<string, string>> }
}

/** The routes of one path, found by exact path first, then by the longest prefix. */
export function findPlainRoutes(routes: readonly PlainRoute[], path: string): readonly PlainRoute[] {
  const exact = routes.filter((route) => route.isPrefix !== true && route.path === path)
  if (exact.length > 0) return exact
  const under = routes.filter((route) => route.isPrefix === true && path.startsWith(route.path))
  const longest = Math.max(...under.map((route) => route.path.length))
  return under.filter((route) => route.path.length === longest)
}

/** Serves one request of a plain route. Never rejects. */
export async function servePlain(core: Core, route: PlainRoute, exchange: Exchange): Promise<void> {
  const { call } = exchange
  let outcome: StatusCode | 'OK' = 'OK'
  try {
    startDeadline(call, { defaultMs: route.deadlineDefaultMs, maxMs: core.limits.deadlineMaxMs })
    await call.guard(admit(core.gate, route.access, call).then(() => route.handle(exchange)))
  } catch (error) {
    outcome = refuse(core, route.path, restRefusals, exchange, error).code
  }
  finish(core, route.path, restRefusals, exchange, outcome)
}

/** A route that serves one JSON document, readable by anyone. */
export function documentRoute(path: string, document: unknown): PlainRoute {
  const body = Buffer.from(JSON.stringify(document))
  return {
    verbs: ['GET'],
    path,
    access: 'public',
    async handle({ request, response, call }) {
      const headers = { ...call.answerHeaders, 'content-type': 'application/json', 'content-length': body.length }
      response.writeHead(200, headers)
      response.end(request.method === 'HEAD' ? undefined : body)
    },
  }
}
