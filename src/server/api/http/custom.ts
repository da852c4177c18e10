import { METHODS } from 'node:http'
import { invalidFields } from '../../../foundation/base/index.ts'
import { environmentIdOf } from '../caller.ts'
import { DEFAULT_LIMITS } from '../limits.ts'
import type { Finding } from '../operation.ts'
import { hasNoBody } from '../pipeline/body.ts'
import { CALL_SCOPE, dryRun, type ProxyCallDeps, upstreamFailure } from '../services/proxy-calls.ts'
import { ACCOUNT_PARAMETER, accountIdFrom, DRY_RUN_PARAMETER, flagFrom } from './proxy-query.ts'
import { streamedBody, streamedHeaders, upstreamHeaders } from './proxy-request.ts'
import { sendPreview, sendStream, showLogEntry, showRateLimit } from './proxy-response.ts'
import type { HttpRoute } from './routes.ts'

const CUSTOM_PREFIX = '/custom/'

/** Every verb but those that concern the connection to this service. HEAD is GET without the body, also upstream. */
const CUSTOM_VERBS = METHODS.filter((verb) => !['CONNECT', 'HEAD', 'OPTIONS', 'TRACE'].includes(verb))

/**
 * `/custom/{path}`: any path of the upstream with the account's authorization; bodies pass unchanged in both directions. A dry
 * run reads no body. An answer that the definition classifies as an error or a rate limit is sent as such, with the upstream's body.
 */
export function customRoute(deps: ProxyCallDeps): HttpRoute {
  return {
    verbs: CUSTOM_VERBS,
    path: CUSTOM_PREFIX,
    isPrefix: true,
    access: 'environment',
    scope: CALL_SCOPE,
    readsBody: 'after_authentication',
    singleParameters: [ACCOUNT_PARAMETER, DRY_RUN_PARAMETER],
    deadlineDefaultMs: DEFAULT_LIMITS.deadlineDefaultMs,
    async handle(exchange) {
      const { request, context, path } = exchange
      const { accountId, isDryRun, rest } = takeParameters(exchange.query)
      const environmentId = environmentIdOf(context)
      context.logFields = { integrated_account_id: accountId }
      const upstreamPath = `/${path.slice(CUSTOM_PREFIX.length)}${rest === '' ? '' : `?${rest}`}`
      const target = { kind: 'path', verb: request.method ?? '', path: upstreamPath } as const
      if (isDryRun) {
        const asked = { target, headers: upstreamHeaders(request.headers) }
        return sendPreview(exchange, await dryRun(deps, context, { environmentId, accountId }, asked))
      }
      const { plan, access } = await deps.readyAccount(context, environmentId, accountId)
      const body = hasNoBody(request) ? undefined : streamedBody(exchange)
      const outcome = await deps.proxy.stream(plan, access, {
        target,
        headers: { ...body?.headers, ...streamedHeaders(request.headers) },
        bodyStream: body?.bytes,
        signal: context.signal,
      })
      showRateLimit(context, outcome.rateLimit)
      showLogEntry(context, outcome)
      if (outcome.kind !== 'stream') throw upstreamFailure(outcome, {}, { clock: deps.clock, includeRaw: true })
      await sendStream(exchange, outcome)
    },
  }
}

/** Separates this service's parameters, decoded, from the rest of the query, unchanged. @throws Failure INVALID_FIELD */
function takeParameters(query: string): {
  readonly accountId: string
  readonly isDryRun: boolean
  readonly rest: string
} {
  const own = new Map<string, string>()
  const rest: string[] = []
  const findings: Finding[] = []
  for (const pair of query.split('&')) {
    const [[name, value] = ['', '']] = new URLSearchParams(pair)
    if (name !== ACCOUNT_PARAMETER && name !== DRY_RUN_PARAMETER) rest.push(pair)
    else own.set(name, value)
  }
  const accountId = accountIdFrom(own.get(ACCOUNT_PARAMETER), findings)
  const isDryRun = flagFrom(own, DRY_RUN_PARAMETER, findings)
  if (findings.length > 0) throw invalidFields(findings)
  return { accountId, isDryRun, rest: rest.join('&') }
}
