import { randomBytes } from 'node:crypto'
import { Failure, isJsonObject, type Json, newId } from '../base/index.ts'
import type { MethodPlan } from '../definitions/index.ts'
import type { EgressRequest } from '../egress/index.ts'
import { environmentRoots, type TemplateScope } from '../expressions/index.ts'
import type { TokenContext } from '../formats/index.ts'
import {
  type AccountAccess,
  authorizationSecrets,
  callSecrets,
  type SecretRules,
  sendLogged,
  sendRaw,
  tokensIn,
} from '../proxy/index.ts'
import { Redactor } from '../redaction/index.ts'
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
): TokenContext<MethodPlan> {
  const { environmentId, environmentVariables } = account
  const deadlineMs = startedAtMs + TOKEN_REQUESTS_TIMEOUT_MS
  const limits = environmentId === undefined ? {} : { owner: environmentId }
  return {
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
        sendLogged(callLog, account, redaction, each, (logged) => http.send(logged, environmentId))
      return await sendRaw({ send }, request, scope, bounds)
    },
    evaluate: (expression, input) =>
      evaluator.evaluate(expression, { ...input, ...environmentRoots(expression, environmentVariables) }, limits),
    now: () => clock.now(),
    nonce: newId,
    randomSecret: () => randomBytes(SECRET_BYTES).toString('base64url'),
  }
}

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
