import { randomBytes } from 'node:crypto'
import type { JsonObject } from '../base/index.ts'
import type { Plan } from '../definitions/index.ts'
import type { TemplateScope } from '../expressions/index.ts'
import type { AuthorizationContext, ListingContext } from '../formats/index.ts'
import type { CallDependencies } from './dependencies.ts'
import type { AccountAccess, ProxyRequest } from './request.ts'
import { type ResolvedTarget, resolveTarget } from './resolve-target.ts'
import { evaluateSetting } from './setting-expression.ts'

/** One call on its way: what is called, with what, and through which account. */
export interface CallContext {
  readonly target: ResolvedTarget
  readonly request: ProxyRequest
  /** Replaced when credentials are renewed in mid-call, so that whatever follows goes on with the new ones. */
  access: AccountAccess
}

/** @throws Failure METHOD_NOT_DEFINED, SANDBOX_ACCOUNT_READ_ONLY */
export function createCallContext(plan: Plan, access: AccountAccess, request: ProxyRequest): CallContext {
  return { target: resolveTarget(plan, access, request.target), request, access }
}

/** What the placeholders of a call see. @param pagination values of `{{pagination.<name>}}` */
export function templateScope({ access, request }: CallContext, pagination?: JsonObject): TemplateScope {
  return { account: access, call: request, pagination }
}

/** What formats may use during a call. @param setting whose expressions are evaluated, for messages */
export function formatContext(deps: CallDependencies, setting: 'authorization' | 'pagination'): AuthorizationContext {
  return {
    evaluate: (expression, input) => evaluateSetting(deps.evaluator, setting, expression, input),
    now: () => deps.clock.now(),
    nonce: deps.nonce ?? randomNonce,
  }
}

/** What paging may use during a call. */
export function paginationContext(deps: CallDependencies, scope: TemplateScope): ListingContext {
  const { evaluate, now } = formatContext(deps, 'pagination')
  return { evaluate, now, scope }
}

function randomNonce(): string {
  return randomBytes(16).toString('hex')
}
