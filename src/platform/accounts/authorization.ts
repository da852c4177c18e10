import type { ConnectPlan, MethodPlan, Plan } from '../../engine/definitions/index.ts'
import type { TemplateScope } from '../../engine/expressions/index.ts'
import {
  type AuthorizationFailure,
  type AuthorizationRedirect,
  type AuthorizationResult,
  type AuthorizationReturn,
  type AuthorizationRules,
  type AuthorizationStart,
  isSecretField,
  type RevocationResult,
} from '../../engine/formats/index.ts'
import { callSecrets, createRedaction, tokensIn, withCause } from '../../engine/proxy/index.ts'
import { catchFailure, Failure, isTransient } from '../../foundation/base/index.ts'
import type { Json, JsonObject } from '../../foundation/json/index.ts'
import { Redactor } from '../../foundation/redaction/index.ts'
import { findReservedKeys } from './context.ts'
import type { AccountDependencies } from './dependencies.ts'
import { tokenErrorOf } from './request-token.ts'
import { type ResolvedAccount, tokenRulesOf } from './resolved-account.ts'
import { createTokenContext, secretLeaves, sentSecrets } from './token-context.ts'

type AuthorizationDependencies = Pick<AccountDependencies, 'http' | 'evaluator' | 'clock' | 'callLog'>

/** An account that is being connected: it has no row yet. */
export interface AuthorizationTarget {
  readonly plan: Pick<Plan, 'credentials' | 'secrets' | 'tokenFieldsSent'>
  /** Key of the credentials that the customer chose. */
  readonly credential: string
  readonly environmentId: string
  readonly linkSessionId: string
  readonly environmentVariables: JsonObject
  /** Values that were collected before the redirect, by field name. */
  readonly fields: JsonObject
  /** Context of the new account so far. */
  readonly context: JsonObject
}

/**
 * Builds the address of the consent page; for OAuth 1.0a a request token is obtained from the third party first. Not in a
 * transaction.
 *
 * @returns `secrets` must be stored encrypted until the browser returns; messages of failures are redacted
 */
export async function beginAuthorization(
  deps: AuthorizationDependencies,
  target: AuthorizationTarget,
  start: AuthorizationStart,
): Promise<AuthorizationRedirect | AuthorizationFailure> {
  const scope = scopeOf(target, start.redirectUri)
  const rules = rulesOf(target)
  return await withRedaction(deps, target, scope, [start.state], 'provider_error', (context) =>
    rules.begin(context, scope, start),
  )
}

/**
 * Reads what the third party sent back with the browser, and exchanges the code. The exchange is sent once; its caller makes
 * sure that this function is called once for each redirect. Not in a transaction.
 *
 * @returns messages of failures are redacted of everything that was sent
 */
export async function completeAuthorization(
  deps: AuthorizationDependencies,
  target: AuthorizationTarget,
  back: AuthorizationReturn,
): Promise<AuthorizationResult> {
  const scope = scopeOf(target, back.redirectUri)
  const rules = rulesOf(target)
  const { code = '', state = '' } = back.params
  const known = [code, state, ...secretLeaves(back.secrets)]
  const secrets = [...known, ...returnedTokens(back.params)]
  const result = await withRedaction(deps, target, scope, secrets, 'token_exchange_failed', (context) =>
    rules.complete(context, scope, back),
  )
  if (result.kind === 'failed') return result
  const redaction = new Redactor(() => [...known, ...callSecrets(target.plan, scope.account)])
  return { ...result, context: withoutSecrets(result.context, redaction) }
}

/**
 * Revokes the account's token at the third party, where its definition has an address for it. Not in a transaction.
 *
 * @returns `undefined` when there is nothing to revoke
 */
export async function revokeAuthorization(
  deps: AuthorizationDependencies,
  resolved: ResolvedAccount,
): Promise<RevocationResult | undefined> {
  const { access, token, plan } = resolved
  const rules = tokenRulesOf(resolved)
  if (token === undefined || rules?.revokeToken === undefined) return undefined
  const scope: TemplateScope = { account: access, call: {} }
  const sent: TemplateScope[] = []
  try {
    const context = createTokenContext(deps, { ...withCause(access, 'token', access.id), plan }, (each) =>
      sent.push(each),
    )
    const result = await rules.revokeToken(context, scope, token)
    return result.kind === 'revoked' ? result : { ...result, message: redact(result.message) }
  } catch (error) {
    const { message, ...rest } = tokenErrorOf(error)
    return { ...rest, message: redact(message) }
  }

  function redact(message: string): string {
    const redaction = createRedaction(plan, access)
    redaction.setSecrets('requests', () => sentSecrets(sent))
    return redaction.redactText(message)
  }
}

/** The rules of the chosen credential. @throws Error when it has no redirect: its caller offers those that have one */
function rulesOf({ plan, credential }: AuthorizationTarget): AuthorizationRules<MethodPlan> {
  const rules = connectPlan(plan, credential)?.authorization
  if (rules === undefined) throw new Error(`the credential ${credential} of the definition has no redirect`)
  return rules
}

function connectPlan(plan: AuthorizationTarget['plan'], credential: string): ConnectPlan | undefined {
  return plan.credentials.find((each) => each.key === credential)
}

function scopeOf(
  { plan, credential, fields, context, environmentVariables }: AuthorizationTarget,
  redirectUri: string,
): TemplateScope {
  const secretNames = new Set(
    connectPlan(plan, credential)?.fields.flatMap((field) => (isSecretField(field) ? [field.name] : [])),
  )
  const entries: readonly [string, Json][] = Object.entries(fields)
  return {
    account: {
      credentials: Object.fromEntries(entries.filter(([name]) => secretNames.has(name))),
      context: { ...Object.fromEntries(entries.filter(([name]) => !secretNames.has(name))), ...context },
      environmentVariables,
      connection: { redirect_uri: redirectUri },
    },
    call: {},
  }
}

/** Turns a thrown Failure into a result, and redacts the message of a failure. */
async function withRedaction<Result extends { readonly kind: string }>(
  deps: AuthorizationDependencies,
  { plan, environmentId, linkSessionId, environmentVariables }: AuthorizationTarget,
  { account }: TemplateScope,
  known: readonly string[],
  otherwise: AuthorizationFailure['code'],
  run: (context: ReturnType<typeof createTokenContext>) => Promise<Result | AuthorizationFailure>,
): Promise<Result | AuthorizationFailure> {
  const sent: TemplateScope[] = []
  const context = createTokenContext(
    deps,
    { plan, environmentId, environmentVariables, cause: { kind: 'authorization', id: linkSessionId } },
    (each) => sent.push(each),
  )
  const outcome = await catchFailure(() => run(context))
  const result = outcome instanceof Failure ? failedBy(outcome, otherwise) : outcome
  if (!isFailed(result)) return result
  const redaction = new Redactor(() => [...known, ...callSecrets(plan, account), ...sentSecrets(sent)])
  const { providerError } = result
  return {
    ...result,
    message: redaction.redactText(result.message),
    ...(providerError === undefined ? {} : { providerError: redaction.redactText(providerError) }),
  }
}

function isFailed(result: { readonly kind: string }): result is AuthorizationFailure {
  return result.kind === 'failed'
}

function failedBy(failure: Failure, otherwise: AuthorizationFailure['code']): AuthorizationFailure {
  const code = isTransient(failure) ? 'provider_unreachable' : otherwise
  return { kind: 'failed', code, message: failure.publicMessage }
}

/** Parameters of a redirect that describe it; long texts in all others may be codes and tokens. */
const PUBLIC_RETURNED: ReadonlySet<string> = new Set([
  'error',
  'error_code',
  'error_description',
  'error_message',
  'error_reason',
  'error_subtype',
  'error_uri',
  'iss',
  'scope',
])

function returnedTokens(params: Readonly<Record<string, string>>): string[] {
  return Object.entries(params).flatMap(([name, value]) => (PUBLIC_RETURNED.has(name) ? [] : tokensIn(value)))
}

/** The context can be read by everyone with access to the environment: values that hold a secret are left out. */
function withoutSecrets(context: JsonObject, redaction: Redactor): JsonObject {
  const entries: readonly [string, Json][] = Object.entries(context)
  const kept = entries.filter(
    ([key, value]) => redaction.redactJson(value) === value && findReservedKeys({ [key]: value }).length === 0,
  )
  return Object.fromEntries(kept)
}
