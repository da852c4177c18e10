import { randomBytes } from 'node:crypto'
import type { JsonObject } from '../base/index.ts'
import type { Plan } from '../definition/index.ts'
import type { Scope } from '../expression/index.ts'
import type { AuthorizationTools, ListingTools } from '../formats/index.ts'
import type { CallDependencies } from './dependencies.ts'
import { evaluateSetting } from './evaluate-setting.ts'
import type { AccountAccess, ProxyRequest } from './request.ts'
import { type ResolvedTarget, resolveTarget } from './resolve-target.ts'

/** One call on its way: what is called, with what, and through which account. */
export interface Job {
  readonly target: ResolvedTarget
  readonly request: ProxyRequest
  /** Replaced when credentials are renewed in mid-call, so that whatever follows goes on with the new ones. */
  access: AccountAccess
}

/** @throws Failure METHOD_NOT_DEFINED, SANDBOX_ACCOUNT_READ_ONLY */
export function startJob(plan: Plan, access: AccountAccess, request: ProxyRequest): Job {
  return { target: resolveTarget(plan, access, request.target), request, access }
}

/** What the placeholders of a call see. @param pagination values of `{{pagination.<name>}}` */
export function scopeOf({ access, request }: Job, pagination?: JsonObject): Scope {
  return { account: access, call: request, pagination }
}

/** What formats may use during a call. @param setting whose expressions are evaluated, for messages */
export function toolsOf(deps: CallDependencies, setting: 'authorization' | 'pagination'): AuthorizationTools {
  return {
    evaluate: (expression, input) => evaluateSetting(deps.evaluator, setting, expression, input),
    now: () => deps.clock.now(),
    nonce: deps.nonce ?? randomNonce,
  }
}

/** What paging may use during a call. */
export function listingTools(deps: CallDependencies, scope: Scope): ListingTools {
  const { evaluate, now } = toolsOf(deps, 'pagination')
  return { evaluate, now, scope }
}

function randomNonce(): string {
  return randomBytes(16).toString('hex')
}
