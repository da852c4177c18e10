import { type CallTarget, findPassedOn, type SuccessOutcome } from '../../../engine/proxy/index.ts'
import { invalidFields } from '../../../foundation/base/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../foundation/json/index.ts'
import type { ResolvedAccount } from '../../../platform/accounts/index.ts'
import { environmentIdOf } from '../caller.ts'
import { DEFAULT_LIMITS } from '../limits.ts'
import { methodNotAllowed } from '../pipeline/errors.ts'
import { namesOf } from '../services/proxy.convert.ts'
import { CALL_SCOPE, dryRun, type ProxyCallDeps, upstreamFailure } from '../services/proxy-calls.ts'
import { PROXY_PREFIX, PROXY_VERBS, type ProxyPath, parseProxyPath, verbsOfProxyPath } from './proxy-path.ts'
import { ARGS_PARAMETER, PROXY_PARAMETERS, type ProxyQuery, parseProxyQuery } from './proxy-query.ts'
import { type ProxyBody, readProxyBody, streamedHeaders, upstreamHeaders } from './proxy-request.ts'
import { sendJson, sendPreview, sendStream, showLogEntry, showRateLimit } from './proxy-response.ts'
import type { HttpExchange, HttpRoute } from './routes.ts'

/** A requested call and its account. */
interface ProxyCall {
  readonly target: CallTarget
  readonly id: string | undefined
  readonly query: ProxyQuery
  readonly body: ProxyBody
  readonly args: JsonObject | undefined
  readonly account: ResolvedAccount
}

/** `/proxy/…`: calls of described methods and actions over plain HTTP. */
export function proxyRoute(deps: ProxyCallDeps): HttpRoute {
  return {
    verbs: PROXY_VERBS,
    verbsAt: (path) => verbsOfProxyPath(path.slice(PROXY_PREFIX.length)),
    path: PROXY_PREFIX,
    isPrefix: true,
    access: 'environment',
    scope: CALL_SCOPE,
    readsBody: 'after_authentication',
    singleParameters: PROXY_PARAMETERS,
    deadlineDefaultMs: DEFAULT_LIMITS.deadlineDefaultMs,
    async handle(exchange) {
      const { request, context } = exchange
      const { target, id, otherVerbs } = requireTarget(exchange)
      const query = parseProxyQuery(exchange.query)
      context.logFields = { integrated_account_id: query.accountId, ...target }
      const { body, args } = separateArgs(target, query, await readProxyBody(exchange))
      if (query.isDryRun) return preview(deps, exchange, { target, id, query, body, args })
      const account = await deps.readyAccount(context, environmentIdOf(context), query.accountId)
      if (otherVerbs !== undefined && !isDefined(account, target))
        throw methodNotAllowed(
          context,
          otherVerbs,
          '; POST calls a method of the resource, and it has none of this name',
        )
      const asked = { target, id, query, body, args, account }
      if (body.kind === 'bytes' || answersBytes(account, target)) return streamThrough(deps, exchange, asked)
      const { plan, access } = account
      const outcome = await deps.proxy.call(plan, access, {
        target,
        id,
        query: query.query,
        body: body.value,
        args,
        headers: upstreamHeaders(request.headers),
        page: { limit: query.limit, cursor: query.cursor },
        signal: context.signal,
      })
      showRateLimit(context, outcome.rateLimit)
      showLogEntry(context, outcome)
      const passedOn = findPassedOn(outcome)
      if (passedOn !== undefined)
        return await sendJson(exchange, answerJson(passedOn, query.includeRaw), passedOn.status)
      if (outcome.kind !== 'ok')
        throw upstreamFailure(outcome, namesOf(target), { clock: deps.clock, includeRaw: query.includeRaw })
      await sendJson(exchange, answerJson(outcome, query.includeRaw))
    },
  }
}

function requireTarget({ request, path, context }: HttpExchange): Extract<ProxyPath, { kind: 'target' }> {
  const verb = request.method === 'HEAD' ? 'GET' : (request.method ?? '')
  const address = parseProxyPath(verb, path.slice(PROXY_PREFIX.length))
  if (address.kind === 'target') return address
  throw methodNotAllowed(context, address.allow)
}

/** Tells whether the definition has the method; true for an unknown resource, which the call itself reports. */
function isDefined({ plan }: ResolvedAccount, target: CallTarget): boolean {
  if (target.kind !== 'method') return true
  const methods = plan.resources.get(target.resource)
  return methods === undefined || methods.has(target.method)
}

/**
 * The arguments of a call, and its body without them: an action takes them as the member `args` of its body too.
 *
 * @throws Failure INVALID_FIELD when that member is no object, or the query gives arguments as well
 */
function separateArgs(target: CallTarget, query: ProxyQuery, body: ProxyBody): Pick<ProxyCall, 'args' | 'body'> {
  if (target.kind !== 'action' || body.kind !== 'value' || !isJsonObject(body.value)) return { args: query.args, body }
  const { [ARGS_PARAMETER]: args, ...rest } = body.value
  if (args === undefined) return { args: query.args, body }
  if (!isJsonObject(args))
    throw invalidFields([{ field: ARGS_PARAMETER, description: 'must be a JSON object', rule: 'type' }])
  if (query.args !== undefined)
    throw invalidFields([
      { field: ARGS_PARAMETER, description: 'is given in the query and in the body', rule: 'duplicate_parameter' },
    ])
  return { args, body: { kind: 'value', value: Object.keys(rest).length === 0 ? undefined : rest } }
}

/** Tells whether the definition declares the method's answer as bytes. */
function answersBytes({ plan }: ResolvedAccount, target: CallTarget): boolean {
  if (target.kind !== 'method') return false
  return plan.resources.get(target.resource)?.get(target.method)?.responseFormat?.format === 'binary'
}

async function preview(
  deps: ProxyCallDeps,
  exchange: HttpExchange,
  { target, id, query, body, args }: Omit<ProxyCall, 'account'>,
): Promise<void> {
  const environmentId = environmentIdOf(exchange.context)
  const preview = await dryRun(
    deps,
    exchange.context,
    { environmentId, accountId: query.accountId },
    {
      target,
      id,
      query: query.query,
      args,
      headers: upstreamHeaders(exchange.request.headers),
      body: body.kind === 'value' ? body.value : undefined,
      page: { limit: query.limit, cursor: query.cursor },
    },
  )
  if (body.kind === 'bytes') body.bytes.destroy()
  await sendPreview(exchange, preview)
}

async function streamThrough(deps: ProxyCallDeps, exchange: HttpExchange, asked: ProxyCall): Promise<void> {
  const { request, context } = exchange
  const { target, id, query, body, args, account } = asked
  const outcome = await deps.proxy.stream(account.plan, account.access, {
    target,
    id,
    query: query.query,
    args,
    signal: context.signal,
    headers: { ...(body.kind === 'bytes' ? body.headers : {}), ...streamedHeaders(request.headers) },
    ...(body.kind === 'bytes' ? { bodyStream: body.bytes } : { body: body.value }),
  })
  showRateLimit(context, outcome.rateLimit)
  showLogEntry(context, outcome)
  if (outcome.kind !== 'stream')
    throw upstreamFailure(outcome, namesOf(target), { clock: deps.clock, includeRaw: query.includeRaw })
  await sendStream(exchange, outcome)
}

/** The JSON answer of a call; members that do not apply are absent. */
function answerJson({ result, page, body }: SuccessOutcome, includeRaw: boolean): Record<string, Json | undefined> {
  return {
    result,
    next_cursor: page?.nextCursor ?? undefined,
    prev_cursor: page?.previousCursor,
    stop_reason: page?.stopReason,
    raw: includeRaw ? body : undefined,
  }
}
