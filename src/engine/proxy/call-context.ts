import { randomBytes } from 'node:crypto'
import type { JsonObject } from '../../foundation/json/index.ts'
import type { Plan } from '../definitions/plan.ts'
import type { TemplateScope } from '../expressions/placeholder.ts'
import type { AuthorizationContext, Challenge } from '../formats/authorization/authorization.ts'
import type { ListingContext } from '../formats/pagination/paginator.ts'
import type { CallDependencies } from './dependencies.ts'
import type { AccountAccess, ProxyRequest } from './request.ts'
import { type ResolvedTarget, resolveTarget } from './resolve-target.ts'
import { evaluateSetting } from './setting-expression.ts'

/** One call: its target, its request and its account. */
export interface CallContext {
  readonly target: ResolvedTarget
  readonly request: ProxyRequest
  /** Replaced by a credential refresh, so that later requests of the call use the new credentials. */
  access: AccountAccess
  /** The last challenge of the third party, which later requests of the call answer too. */
  challenge?: Challenge
}

/** Resolves the target of a call. @throws Failure METHOD_NOT_DEFINED, SANDBOX_ACCOUNT_READ_ONLY */
export function createCallContext(plan: Plan, access: AccountAccess, request: ProxyRequest): CallContext {
  return { target: resolveTarget(plan, access, request.target), request, access }
}

/** The values that placeholders of the call may read. @param pagination values of `{{pagination.<name>}}` */
export function templateScope({ access, request }: CallContext, pagination?: JsonObject): TemplateScope {
  return { account: access, call: request, pagination }
}

/** Expressions, clock and nonce for a format. @param setting named in error messages of its expressions */
export function formatContext(deps: CallDependencies, setting: 'authorization' | 'pagination'): AuthorizationContext {
  return {
    evaluate: (expression, input) => evaluateSetting(deps, setting, expression, input),
    now: () => deps.clock.now(),
    nonce: deps.nonce ?? randomNonce,
  }
}

/** Expressions, clock and scope for a pagination format. */
export function paginationContext(deps: CallDependencies, scope: TemplateScope): ListingContext {
  const { evaluate, now } = formatContext(deps, 'pagination')
  return { evaluate, now, scope }
}

function randomNonce(): string {
  return randomBytes(16).toString('hex')
}
