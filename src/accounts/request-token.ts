import {
  type BackoffPolicy,
  backoffMs,
  type Clock,
  Failure,
  type FailureReason,
  type JsonObject,
  newId,
} from '../base/index.ts'
import type { MethodPlan } from '../definitions/index.ts'
import type { HttpClient } from '../egress/index.ts'
import type { TemplateScope } from '../expressions/index.ts'
import {
  readStandardTokenResponse,
  type TokenContext,
  type TokenError,
  type TokenResult,
  type TokenRules,
} from '../formats/index.ts'
import {
  type AccountAccess,
  type ActionOutcome,
  createRedaction,
  type Proxy as Engine,
  type ExpressionEvaluator,
  sendRaw,
  tokensIn,
} from '../proxy/index.ts'
import { type ResolvedAccount, usesRefreshAction } from './load-account.ts'

/** What asking a token endpoint needs. */
export interface RequestTokenDeps extends TokenActionDeps {
  readonly http: Pick<HttpClient, 'send'>
  readonly evaluator: ExpressionEvaluator
}

/** One request, and all requests of one token together. */
const REQUEST_TIMEOUT_MS = 10_000
export const TOKEN_REQUESTS_TIMEOUT_MS = 25_000
const RESPONSE_BYTES_MAX = 256 * 1024

/** Failures that say nothing about account or integration: another attempt may not meet them. */
const TRANSIENT_REASONS: ReadonlySet<FailureReason> = new Set([
  'UPSTREAM_UNREACHABLE',
  'UPSTREAM_INVALID_RESPONSE',
  'DEADLINE_EXCEEDED',
  'RATE_LIMITED',
  'CANCELLED',
  'SHUTTING_DOWN',
  'INTERNAL',
])

/**
 * Asks for a token as the definition says: for the next one by its action `refresh_token`, where it has one. Whatever goes
 * wrong is an answer; its message holds nothing that was sent.
 *
 * @param ready with the token that is to be replaced, if there is one
 */
export async function requestToken(
  deps: RequestTokenDeps,
  rules: TokenRules<MethodPlan>,
  ready: ResolvedAccount,
): Promise<TokenResult> {
  const { access, token: previous } = ready
  const scope: TemplateScope = { account: access, call: {} }
  const sent: TemplateScope[] = [scope]
  const answer = await catchTokenError(() =>
    usesRefreshAction(ready)
      ? requestTokenByAction(deps, ready, AbortSignal.timeout(TOKEN_REQUESTS_TIMEOUT_MS))
      : rules.requestToken(tokenContext(deps, access, sent), scope, previous),
  )
  if (answer.kind === 'granted') return answer
  const redaction = createRedaction(ready.plan, access)
  // What was computed for the requests, such as an assertion, and the answers to earlier ones.
  redaction.setSecrets('requests', () => sent.flatMap(({ call }) => tokensIn(call.args ?? null)))
  return { ...answer, message: redaction.redactText(answer.message) }
}

async function catchTokenError(ask: () => Promise<TokenResult>): Promise<TokenResult> {
  try {
    return await ask()
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    const kind = TRANSIENT_REASONS.has(error.reason) ? 'transient' : 'client_refused'
    return { kind, message: error.publicMessage, retryAfterSeconds: error.retryAfterSeconds }
  }
}

function tokenContext(
  { http, evaluator, clock }: RequestTokenDeps,
  access: AccountAccess,
  sent: TemplateScope[],
): TokenContext<MethodPlan> {
  const deadlineMs = clock.monotonicMs() + TOKEN_REQUESTS_TIMEOUT_MS
  const limits = access.environmentId === undefined ? {} : { owner: access.environmentId }
  return {
    async send(request, scope) {
      sent.push(scope)
      const leftMs = deadlineMs - clock.monotonicMs()
      if (leftMs <= 0) throw new Failure('DEADLINE_EXCEEDED', 'the requests for a token took too long together')
      const bounds = { timeoutMs: Math.min(REQUEST_TIMEOUT_MS, leftMs), responseBytesMax: RESPONSE_BYTES_MAX }
      return await sendRaw(http, request, scope, bounds)
    },
    evaluate: (expression, input) => evaluator.evaluate(expression, input, limits),
    now: () => clock.now(),
    nonce: newId,
  }
}

/** What renewing a token in steps needs. */
interface TokenActionDeps {
  /** One that asks nobody to renew credentials: that is what is being done. */
  readonly engine: Pick<Engine, 'runAction'>
  readonly clock: Clock
}

/** The action of a definition that asks for the next token. */
export const REFRESH_ACTION = 'refresh_token'

/**
 * Asks for the next token by the action `refresh_token`; its result is read as the answer of a token endpoint
 * (`access_token`, `refresh_token`, `expires_in`). The message of a refusal holds nothing that was sent.
 *
 * @throws Failure of a step that was not answered; METHOD_NOT_DEFINED
 */
async function requestTokenByAction(
  { engine, clock }: TokenActionDeps,
  { plan, access, token }: ResolvedAccount,
  signal: AbortSignal,
): Promise<TokenResult> {
  const target = { kind: 'action', action: REFRESH_ACTION } as const
  const { outcome: end, steps } = await engine.runAction(plan, access, { target, signal })
  if (end.kind === 'refused') throw end.failure
  const rules = { clientOwner: 'integration', now: clock.now(), previous: token } as const
  const answer = readStandardTokenResponse(responseOf(end), rules)
  return answer.kind === 'granted' ? answer : { ...answer, message: steps.at(-1)?.error ?? answer.message }
}

function responseOf(end: Exclude<ActionOutcome, { readonly kind: 'refused' }>) {
  switch (end.kind) {
    case 'ok':
      return { status: 200, headers: {}, body: end.result }
    case 'rate_limited':
      return { status: end.status, headers: { 'retry-after': String(end.retryAfterSeconds) }, body: end.body }
    case 'upstream_error':
      return { status: end.status, headers: end.headers, body: end.result ?? end.body }
  }
}

/** A refusal as it is kept beside the token, for whoever asks during the pause after it. */
export type StoredTokenError = Pick<TokenError, 'kind' | 'message'>

/** How long nobody asks again. Somebody has to act after a refusal, so its pause is longer than that of a hiccup. */
const RETRY_BACKOFFS: Readonly<Record<TokenError['kind'], BackoffPolicy>> = {
  transient: { baseMs: 5_000, factor: 2, maxMs: 600_000, jitterFloor: 0.5 },
  client_refused: { baseMs: 30_000, factor: 2, maxMs: 3_600_000, jitterFloor: 0.5 },
  grant_refused: { baseMs: 60_000, factor: 2, maxMs: 3_600_000, jitterFloor: 0.5 },
}

/** The pause after a refusal; what the server asked for is the floor. @param failures in a row, this one included */
export function tokenRetryDelayMs(refusal: TokenError, failures: number, random: () => number): number {
  return Math.max((refusal.retryAfterSeconds ?? 0) * 1_000, backoffMs(RETRY_BACKOFFS[refusal.kind], failures, random))
}

/** What is stored of a refusal. */
export function tokenErrorJson({ kind, message }: TokenError): JsonObject {
  return { kind, message }
}

/** What `tokenErrorJson` wrote. */
export function parseTokenError({ kind, message }: JsonObject): StoredTokenError {
  const known = kind === 'grant_refused' || kind === 'client_refused' ? kind : 'transient'
  return { kind: known, message: String(message) }
}

/** The refusal as callers get it. */
export function tokenFailure({ kind, message }: StoredTokenError, accountId: string, retryAfterMs: number): Failure {
  const details = {
    resource: { type: 'integrated_account', id: accountId },
    metadata: { cause: kind },
    retryAfterSeconds: Math.ceil(retryAfterMs / 1_000),
  }
  switch (kind) {
    case 'grant_refused': {
      const text = `the third party refuses the account's credentials (${message}): connect it again`
      return new Failure('CREDENTIALS_INVALID', text, details)
    }
    case 'client_refused': {
      const text = `the third party refuses the integration's client or settings (${message}): correct the definition or its override`
      return new Failure('TOKEN_REQUEST_FAILED', text, details)
    }
    case 'transient':
      return new Failure(
        'TOKEN_REQUEST_FAILED',
        `the request for a token failed (${message}): try again later`,
        details,
      )
  }
}
