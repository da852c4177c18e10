import { METHODS } from 'node:http'
import { invalidFields } from '../../base/index.ts'
import type { CallThroughDeps } from '../call-through.ts'
import { upstreamFailure } from '../failure/upstream.ts'
import { DEFAULT_LIMITS } from '../limits.ts'
import type { Finding } from '../service.ts'
import { hasNoBody } from '../stages/body.ts'
import { sendStream, showRateLimit } from './call-answer.ts'
import { streamedBody } from './call-body.ts'
import { passingHeaders } from './call-headers.ts'
import { ACCOUNT_PARAMETER, accountIdFrom } from './call-query.ts'
import type { PlainRoute } from './plain-route.ts'

const CUSTOM_PREFIX = '/custom/'

/** Every verb but those that concern the connection to this service. HEAD is GET without the body, also upstream. */
const CUSTOM_VERBS = METHODS.filter((verb) => !['CONNECT', 'HEAD', 'OPTIONS', 'TRACE'].includes(verb))

/**
 * `/custom/{path}`: any path of the third party, with the account's authorization, bytes both ways as they are. What the
 * definition counts as an error or a rate limit is answered as such, with what the third party said.
 */
export function customRoute(deps: CallThroughDeps): PlainRoute {
  return {
    verbs: CUSTOM_VERBS,
    path: CUSTOM_PREFIX,
    isPrefix: true,
    access: 'environment',
    deadlineDefaultMs: DEFAULT_LIMITS.deadlineDefaultMs,
    async handle(exchange) {
      const { request, call, path } = exchange
      const { accountId, rest } = takeAccount(exchange.query)
      const { plan, access } = await deps.readyAccount(call.principal.environmentId, accountId)
      const upstreamPath = `/${path.slice(CUSTOM_PREFIX.length)}${rest === '' ? '' : `?${rest}`}`
      const target = { kind: 'path', verb: request.method ?? '', path: upstreamPath } as const
      const body = hasNoBody(request) ? undefined : streamedBody(exchange)
      const outcome = await deps.proxy.stream(plan, access, {
        target,
        headers: { ...body?.headers, ...passingHeaders(request.headers) },
        bodyStream: body?.bytes,
        signal: call.signal,
      })
      showRateLimit(call, outcome.rateLimit)
      if (outcome.kind !== 'stream') throw upstreamFailure(outcome, target, { clock: deps.clock, includeRaw: true })
      await sendStream(exchange, outcome)
    },
  }
}

/** The account's id, and the other parameters letter by letter. @throws Failure INVALID_FIELD */
function takeAccount(query: string): { readonly accountId: string; readonly rest: string } {
  const pairs = query.split('&')
  const isOwn = (pair: string) => pair.split('=', 1)[0] === ACCOUNT_PARAMETER
  const findings: Finding[] = []
  const own = pairs.filter(isOwn).map((pair) => pair.slice(ACCOUNT_PARAMETER.length + 1))
  const accountId = accountIdFrom(own[0], findings)
  if (own.length > 1)
    findings.push({ field: ACCOUNT_PARAMETER, description: 'is given more than once', rule: 'duplicate_parameter' })
  if (findings.length > 0) throw invalidFields(findings)
  return { accountId, rest: pairs.filter((pair) => !isOwn(pair)).join('&') }
}
