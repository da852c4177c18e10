import type { HandlerContext } from '@connectrpc/connect'
import {
  type ApiProxy,
  type PreviewRequest,
  type RateLimitedOutcome,
  type RequestPreview,
  type UpstreamErrorOutcome,
  withCause,
} from '../../../engine/proxy/index.ts'
import { type Clock, Failure, isProxyCommand } from '../../../foundation/base/index.ts'
import { retryAfterSeconds } from '../../../foundation/egress/index.ts'
import type { Json, JsonObject } from '../../../foundation/json/index.ts'
import {
  type DryRunAccount,
  loadAccountForCall,
  loadAccountForDryRun,
  type ResolvedAccount,
} from '../../../platform/accounts/index.ts'
import { findMissingScope } from '../../../platform/tenancy/index.ts'
import { accountKey, callerOf, requestIdKey } from '../caller.ts'
import { assertAccountWithinLimits } from './token-limits.ts'

/** A request that goes through an account: it ends when the account is deleted or its installation disabled. */
export type OpenRequest = Pick<HandlerContext, 'values'>

/** What a token needs to call third parties; a call that changes something there needs `WRITE_SCOPE` beside it. */
export const CALL_SCOPE = 'proxy:read'
export const WRITE_SCOPE = 'proxy:write'

/** The dependencies of proxied calls, over RPC and HTTP. */
export interface ProxyCallDeps {
  readonly proxy: ApiProxy
  readonly clock: Clock
  /** Loads an account for a call of the request, with a valid token; without the scope `proxy:write` nothing is written through it. @param runId of a daemon: what the request log names as the cause @throws Failure as `loadAccountForCall` does */
  readonly readyAccount: (
    request: OpenRequest,
    environmentId: string,
    id: string,
    runId?: string,
  ) => Promise<ResolvedAccount>
  /** Loads an account as it is stored; sends no request. @throws Failure as `loadAccountForDryRun` does */
  readonly previewAccount: (request: OpenRequest, environmentId: string, id: string) => Promise<DryRunAccount>
}

/** Calls through stored accounts; each request notes its account. */
export function createProxyCalls(
  accounts: Parameters<typeof loadAccountForCall>[0],
  proxy: ApiProxy,
  clock: Clock,
): ProxyCallDeps {
  return {
    proxy,
    clock,
    async readyAccount(request, environmentId, id, runId) {
      await assertAccountWithinLimits(accounts, callerOf(request), id)
      const ready = await loadAccountForCall(accounts, environmentId, id, 'call')
      request.values.set(accountKey, { environmentId, id: ready.account.id })
      const access =
        runId === undefined
          ? withCause(ready.access, 'call', request.values.get(requestIdKey) || undefined)
          : withCause(ready.access, 'run', runId)
      const writeError = findMissingScope(callerOf(request), WRITE_SCOPE)
      return { ...ready, access: writeError === undefined ? access : { ...access, writeError } }
    },
    async previewAccount(request, environmentId, id) {
      await assertAccountWithinLimits(accounts, callerOf(request), id)
      return await loadAccountForDryRun(accounts, environmentId, id)
    },
  }
}

/** The account of a call. */
export interface CallAccount {
  readonly environmentId: string
  readonly accountId: string
}

/**
 * A dry run: nothing is sent, no token refreshed, no rate limit used. It also works where the call itself would fail (an account
 * that is not active, a write with a sandbox account), and reports that error.
 */
export async function dryRun(
  { proxy, previewAccount }: Pick<ProxyCallDeps, 'proxy' | 'previewAccount'>,
  open: OpenRequest,
  { environmentId, accountId }: CallAccount,
  request: PreviewRequest,
): Promise<RequestPreview> {
  const { resolved: ready, error } = await previewAccount(open, environmentId, accountId)
  const preview = await proxy.preview(ready.plan, ready.access, request)
  return error === undefined ? preview : { ...preview, error }
}

/** An outcome that is an error for the caller. */
export type FailedOutcome = RateLimitedOutcome | UpstreamErrorOutcome

/** Limits of metadata from an error expression: error details are in the trailers of gRPC. */
const METADATA_ENTRIES_MAX = 16
const METADATA_KEY_LENGTH_MAX = 64
const METADATA_VALUE_LENGTH_MAX = 256

/** Server errors of an upstream that are passed on; all other 5xx would look like errors of this service. */
const KEPT_SERVER_ERRORS: ReadonlySet<number> = new Set([503, 504])

/**
 * The failure that a caller gets for an upstream error or rate limit.
 *
 * @param names what was called, for the metadata of the error; see `namesOf`
 */
export function upstreamFailure(
  outcome: FailedOutcome,
  names: Readonly<Record<string, string>>,
  { clock, includeRaw }: { readonly clock: Pick<Clock, 'now'>; readonly includeRaw: boolean },
): Failure {
  const raw = includeRaw ? outcome.body : undefined
  if (outcome.kind === 'rate_limited') return rateLimitFailure(outcome, names, raw)
  const { status, message, metadata, headers, ownHeaders, result, action, request, logId } = outcome
  const seconds = retryAfterSeconds(headers, clock.now())
  return new Failure('UPSTREAM_ERROR', message, {
    metadata: {
      ...flattened(metadata),
      upstream_status: String(status),
      ...upstreamAction(action),
      ...(request === undefined ? {} : { upstream_request: request }),
      ...(logId === undefined ? {} : { log_id: logId }),
      ...names,
    },
    httpStatus: restStatusOf(status),
    headers: definitionHeaders(ownHeaders),
    result,
    raw,
    ...(seconds === undefined ? {} : { retryAfterSeconds: seconds }),
  })
}

/** Limits of headers that a definition may add to an error, and headers that it may not set. */
const HEADERS_MAX = 32
const HEADER_NAME = /^[a-z0-9][a-z0-9_.-]{0,63}$/
const HEADER_VALUE = /^[\x20-\x7e]{0,1024}$/
const OWN_HEADERS =
  /^(?:connection|keep-alive|te|trailer|transfer-encoding|upgrade|date|server|vary|etag|retry-after|set-cookie2?|strict-transport-security|alt-svc|clear-site-data|www-authenticate|(?:content|access-control|grpc|connect|proxy|patchbay)-.*|grpc)$/

function definitionHeaders(headers: UpstreamErrorOutcome['ownHeaders']): Record<string, string> {
  const shown = Object.entries(headers).filter(
    ([name, value]) =>
      HEADER_NAME.test(name) && !OWN_HEADERS.test(name) && !isProxyCommand(name) && HEADER_VALUE.test(value),
  )
  return Object.fromEntries(shown.slice(0, HEADERS_MAX))
}

/** The action that the definition sets for the error; others follow from the status. */
function upstreamAction(action: UpstreamErrorOutcome['action']): Readonly<Record<string, string>> {
  return action === 'retry' || action === 'needs_reauth' || action === 'restart' ? { upstream_action: action } : {}
}

function rateLimitFailure(
  { limitedBy, retryAfterSeconds, logId }: RateLimitedOutcome,
  names: Readonly<Record<string, string>>,
  raw: Json | undefined,
): Failure {
  const details = { metadata: { ...(logId === undefined ? {} : { log_id: logId }), ...names }, retryAfterSeconds }
  const seconds = Math.ceil(retryAfterSeconds)
  return limitedBy === 'budget'
    ? new Failure('BUDGET_EXHAUSTED', `the budget of the definition is used up: wait ${seconds} s`, details)
    : new Failure('UPSTREAM_RATE_LIMITED', `the third party asks to wait ${seconds} s`, { ...details, raw })
}

function restStatusOf(status: number): number {
  return (status >= 400 && status < 500) || KEPT_SERVER_ERRORS.has(status) ? status : 502
}

function flattened(metadata: JsonObject): Record<string, string> {
  const entries = Object.entries(metadata).slice(0, METADATA_ENTRIES_MAX)
  return Object.fromEntries(
    entries.map(([key, value]) => [
      key.slice(0, METADATA_KEY_LENGTH_MAX),
      (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, METADATA_VALUE_LENGTH_MAX),
    ]),
  )
}
