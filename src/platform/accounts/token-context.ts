import { randomBytes } from 'node:crypto'
import type { MethodPlan } from '../../engine/definitions/index.ts'
import { environmentRoots, type TemplateScope } from '../../engine/expressions/index.ts'
import {
  isTruthy,
  parseLooseBody,
  type TokenContext,
  type TokenRejection,
  type TokenResponse,
} from '../../engine/formats/index.ts'
import {
  type AccountAccess,
  authorizationSecrets,
  callSecrets,
  type SecretRules,
  sendLogged,
  sendRaw,
  tokensIn,
} from '../../engine/proxy/index.ts'
import { catchFailure, Failure, newId } from '../../foundation/base/index.ts'
import { type EgressRequest, isTransientStatus } from '../../foundation/egress/index.ts'
import { isJsonObject, type Json } from '../../foundation/json/index.ts'
import { Redactor } from '../../foundation/redaction/index.ts'
import type { AccountDependencies } from './dependencies.ts'

const REQUEST_TIMEOUT_MS = 10_000
/** For all requests of one token together. */
export const TOKEN_REQUESTS_TIMEOUT_MS = 25_000
const RESPONSE_BYTES_MAX = 256 * 1024
const SECRET_BYTES = 32

/** For whom a token is requested; without an id, an account that is being connected. */
type TokenAccount = Pick<
  AccountAccess,
  'environmentId' | 'environmentVariables' | 'environmentIntegrationId' | 'cause'
> & {
  readonly id?: string
  readonly plan: SecretRules
}

/** What token requests need, and the entry of the last one in the request log. */
interface LoggedTokenContext extends TokenContext<MethodPlan> {
  /** Undefined before the first request, and where nothing is logged. */
  logId: string | undefined
}

/**
 * Dependencies of the requests of one token: each is sent once, without redirects, all of them within
 * `TOKEN_REQUESTS_TIMEOUT_MS`.
 *
 * @param onSend called with the variables of each request before it is sent, so that what was sent can be redacted
 * @param startedAtMs `Clock.monotonicMs` from which that time counts. Under a lease: from before it was taken, so that a
 * process that was paused sends no token that another one may have used. Absent: now
 */
export function createTokenContext(
  { http, evaluator, clock, callLog }: Pick<AccountDependencies, 'http' | 'evaluator' | 'clock' | 'callLog'>,
  account: TokenAccount,
  onSend: (scope: TemplateScope) => void,
  startedAtMs = clock.monotonicMs(),
): LoggedTokenContext {
  const { environmentId, environmentVariables } = account
  const deadlineMs = startedAtMs + TOKEN_REQUESTS_TIMEOUT_MS
  const limits = environmentId === undefined ? {} : { owner: environmentId }

  /** What the definition's `error_expression` says of a success response. One that fails says nothing. */
  async function findRejection(
    { errorExpression }: MethodPlan,
    { status, headers, body }: TokenResponse,
  ): Promise<TokenRejection | undefined> {
    if (errorExpression === undefined || status >= 400) return undefined
    const parsed = parseLooseBody({ status, headers, body }).body
    const response = { status, headers, body: parsed }
    const roots = { ...response, response, data: parsed, ...environmentRoots(errorExpression, environmentVariables) }
    const found = await catchFailure(() => evaluator.evaluate(errorExpression, roots, limits))
    return found instanceof Failure ? undefined : rejectionOf(found)
  }

  const context: LoggedTokenContext = {
    logId: undefined,
    async send(request, scope) {
      onSend(scope)
      const leftMs = deadlineMs - clock.monotonicMs()
      if (leftMs <= 0) throw new Failure('DEADLINE_EXCEEDED', 'the requests for a token took too long together')
      const bounds = {
        timeoutMs: Math.min(REQUEST_TIMEOUT_MS, leftMs),
        responseBytesMax: RESPONSE_BYTES_MAX,
        owner: environmentId ?? '',
      }
      const redaction = new Redactor(() => [...callSecrets(account.plan, scope.account), ...sentSecrets([scope])])
      const send = (each: EgressRequest) =>
        sendLogged(
          callLog,
          account,
          redaction,
          each,
          (logged) => http.send(logged, environmentId),
          (logId) => {
            context.logId = logId
          },
        )
      const response = await sendRaw({ send }, request, scope, bounds)
      return { ...response, rejection: await findRejection(request, response) }
    },
    evaluate: (expression, input) =>
      evaluator.evaluate(expression, { ...input, ...environmentRoots(expression, environmentVariables) }, limits),
    now: () => clock.now(),
    nonce: newId,
    randomSecret: () => randomBytes(SECRET_BYTES).toString('base64url'),
  }
  return context
}

/** The result of an error expression: a text is the message, an object as for calls (`message`, `status`, `action`). */
function rejectionOf(found: Json | undefined): TokenRejection | undefined {
  if (typeof found === 'string' && found !== '') return { message: found, isTransient: false }
  if (!isJsonObject(found)) return isTruthy(found) ? { message: UNNAMED_ERROR, isTransient: false } : undefined
  const status = Number(found.status ?? 400)
  if (status < 400 && found.action === undefined) return undefined
  const isTransient = found.action === 'retry' || found.action === 'rate_limited' || isTransientStatus(status)
  return { message: typeof found.message === 'string' ? found.message : UNNAMED_ERROR, isTransient }
}

const UNNAMED_ERROR = 'the answer is an error'

/** Parameters of token requests that are no secrets, under their standard names. */
const PUBLIC_PARAMETERS: ReadonlySet<string> = new Set([
  'grant_type',
  'redirect_uri',
  'scope',
  'client_id',
  'token_type_hint',
  'client_assertion_type',
  'scopes',
  'issuer',
])

/**
 * The secrets of requests that were sent: every parameter but the public ones, computed values, and what looks like a token in
 * the responses to earlier ones.
 *
 * @param sent variables of the requests
 */
export function sentSecrets(sent: readonly TemplateScope[]): string[] {
  return sent.flatMap(({ call }) => {
    const { params = null, values = null, authorization, ...others } = call.args ?? {}
    const headers = typeof authorization === 'string' ? { authorization } : {}
    return [...secretLeaves({ params, values }), ...authorizationSecrets({ headers, query: {} }), ...tokensIn(others)]
  })
}

/** Every text of a value but those under public names. */
export function secretLeaves(value: Json): string[] {
  if (typeof value === 'string') return value === '' ? [] : [value]
  if (Array.isArray(value)) return value.flatMap((item: Json) => secretLeaves(item))
  if (!isJsonObject(value)) return []
  return Object.entries(value).flatMap(([name, item]) => (PUBLIC_PARAMETERS.has(name) ? [] : secretLeaves(item)))
}
