import type { MethodPlan } from '../../engine/definitions/index.ts'
import type { TemplateScope } from '../../engine/expressions/index.ts'
import {
  readStandardTokenResponse,
  type TokenError,
  type TokenResult,
  type TokenRules,
} from '../../engine/formats/index.ts'
import { type ActionOutcome, createRedaction, withCause } from '../../engine/proxy/index.ts'
import {
  type BackoffPolicy,
  Failure,
  hintedWaitMs,
  isTransient,
  type Random,
  wholeSeconds,
} from '../../foundation/base/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import type { AccountDependencies } from './dependencies.ts'
import { REFRESH_ACTION, type ResolvedAccount, usesRefreshAction } from './resolved-account.ts'
import { createTokenContext, sentSecrets, TOKEN_REQUESTS_TIMEOUT_MS } from './token-context.ts'

type RequestDependencies = Pick<AccountDependencies, 'http' | 'evaluator' | 'proxyWithoutRefresh' | 'clock' | 'callLog'>

/**
 * Requests a token as the definition says: the next one by its action `refresh_token`, where it has one. An error is a
 * result; its message is redacted of everything that was sent.
 *
 * @param resolved with the token that is to be replaced, if there is one
 * @param startedAtMs `Clock.monotonicMs` before the lease was taken: the requests end `TOKEN_REQUESTS_TIMEOUT_MS` after it
 */
export async function requestToken(
  deps: RequestDependencies,
  rules: TokenRules<MethodPlan>,
  resolved: ResolvedAccount,
  startedAtMs: number,
): Promise<TokenResult> {
  const { access, token: previous } = resolved
  const scope: TemplateScope = { account: access, call: {} }
  const sent: TemplateScope[] = [scope]
  const account = { ...withCause(access, 'token', access.id), plan: resolved.plan }
  const context = createTokenContext(deps, account, (each) => sent.push(each), startedAtMs)
  const result = await catchTokenError(() =>
    usesRefreshAction(resolved)
      ? requestTokenByAction(deps, resolved, timeoutSignal(deps, startedAtMs))
      : rules.requestToken(context, scope, previous),
  )
  if (result.kind === 'granted') return result
  const redaction = createRedaction(resolved.plan, access)
  redaction.setSecrets('requests', () => sentSecrets(sent))
  return { ...result, message: redaction.redactText(result.message), logId: result.logId ?? context.logId }
}

function timeoutSignal({ clock }: Pick<RequestDependencies, 'clock'>, startedAtMs: number): AbortSignal {
  const leftMs = startedAtMs + TOKEN_REQUESTS_TIMEOUT_MS - clock.monotonicMs()
  // A signal counts whole milliseconds.
  return leftMs > 0 ? AbortSignal.timeout(Math.ceil(leftMs)) : AbortSignal.abort()
}

async function catchTokenError(request: () => Promise<TokenResult>): Promise<TokenResult> {
  try {
    return await request()
  } catch (error) {
    return tokenErrorOf(error)
  }
}

/** A thrown Failure as the error of a token request. @throws everything else again */
export function tokenErrorOf(error: unknown): TokenError {
  if (!(error instanceof Failure)) throw error
  const kind = isTransient(error) ? 'transient' : 'client_refused'
  const { publicMessage: message, retryAfterSeconds, metadata } = error
  return { kind, message, retryAfterSeconds, logId: metadata.log_id }
}

/** The action's result is read like the response of a token endpoint (`access_token`, `refresh_token`, `expires_in`). */
async function requestTokenByAction(
  { proxyWithoutRefresh, clock }: RequestDependencies,
  { plan, access, token }: ResolvedAccount,
  signal: AbortSignal,
): Promise<TokenResult> {
  const target = { kind: 'action', action: REFRESH_ACTION } as const
  const account = withCause(access, 'token', access.id)
  const { outcome, steps } = await proxyWithoutRefresh.runAction(plan, account, { target, signal })
  if (outcome.kind === 'failed') throw outcome.failure
  const context = { clientOwner: 'integration', now: clock.now(), previous: token } as const
  const result = readStandardTokenResponse(responseOf(outcome), context)
  if (result.kind === 'granted') return result
  return {
    ...result,
    message: steps.at(-1)?.error ?? result.message,
    logId: steps.findLast(({ logId }) => logId !== undefined)?.logId,
  }
}

function responseOf(outcome: Exclude<ActionOutcome, { readonly kind: 'failed' }>) {
  switch (outcome.kind) {
    case 'ok':
      return { status: 200, headers: {}, body: outcome.result }
    case 'rate_limited':
      return {
        status: outcome.status,
        headers: { 'retry-after': String(outcome.retryAfterSeconds) },
        body: outcome.body,
      }
    case 'upstream_error':
      return { status: outcome.status, headers: outcome.headers, body: outcome.result ?? outcome.body }
  }
}

/** The last token error, stored beside the token for callers during the back-off. */
export type StoredTokenError = Pick<TokenError, 'kind' | 'message' | 'logId'>

const TRANSIENT_BACKOFF: BackoffPolicy = { baseMs: 5_000, factor: 2, maxMs: 600_000, jitterFloor: 0.5 }
/** Back-off between token requests. A rejected grant or client needs a person to act, so its delays are longer. */
const RETRY_BACKOFFS: Readonly<Record<TokenError['kind'], BackoffPolicy>> = {
  transient: TRANSIENT_BACKOFF,
  unclear: TRANSIENT_BACKOFF,
  client_refused: { baseMs: 30_000, factor: 2, maxMs: 3_600_000, jitterFloor: 0.5 },
  grant_refused: { baseMs: 60_000, factor: 2, maxMs: 3_600_000, jitterFloor: 0.5 },
}

/** Delay before the next token request, at least the server's `Retry-After`. @param failures in a row, this one included */
export function tokenRetryDelayMs(error: TokenError, failures: number, random: Random): number {
  return hintedWaitMs(RETRY_BACKOFFS[error.kind], failures, (error.retryAfterSeconds ?? 0) * 1_000, random)
}

/** The part of an error that is stored. */
export function tokenErrorJson({ kind, message, logId }: TokenError): JsonObject {
  return { kind, message, ...(logId === undefined ? {} : { log_id: logId }) }
}

/** Reads what `tokenErrorJson` wrote. */
export function parseTokenError({ kind, message, log_id: logId }: JsonObject): StoredTokenError {
  const known = kind === 'grant_refused' || kind === 'client_refused' || kind === 'unclear' ? kind : 'transient'
  return { kind: known, message: String(message), logId: typeof logId === 'string' ? logId : undefined }
}

/** The error as callers get it. */
export function tokenFailure(
  { kind, message, logId }: StoredTokenError,
  accountId: string,
  retryAfterMs: number,
): Failure {
  const details = {
    resource: { type: 'integrated_account', id: accountId },
    metadata: { cause: kind, provider_message: message, ...(logId === undefined ? {} : { log_id: logId }) },
    retryAfterSeconds: wholeSeconds(retryAfterMs),
  }
  switch (kind) {
    case 'grant_refused': {
      const text = `the third party rejects the account's credentials (${message}): connect it again`
      return new Failure('CREDENTIALS_INVALID', text, details)
    }
    case 'client_refused': {
      const text = `the third party rejects the integration's client or settings (${message}): correct the definition or its override`
      return new Failure('TOKEN_REQUEST_FAILED', text, details)
    }
    case 'transient':
    case 'unclear':
      return new Failure(
        'TOKEN_REQUEST_FAILED',
        `the request for a token failed (${message}): try again later`,
        details,
      )
  }
}
