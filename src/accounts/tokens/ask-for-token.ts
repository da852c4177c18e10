import { Failure, type FailureReason, newId } from '../../base/index.ts'
import type { MethodPlan } from '../../definition/index.ts'
import type { HttpClient } from '../../egress/index.ts'
import type { TemplateScope } from '../../expression/index.ts'
import type { TokenContext, TokenResult, TokenRules } from '../../formats/index.ts'
import { type AccountAccess, createRedaction, type ExpressionEvaluator, sendRaw, tokensIn } from '../../proxy/index.ts'
import { type ResolvedAccount, usesRefreshAction } from '../ready-account.ts'
import { requestTokenByAction, type TokenActionDeps } from './ask-by-action.ts'

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
