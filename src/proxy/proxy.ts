import type { JsonObject } from '../base/index.ts'
import type { Plan } from '../definition/index.ts'
import { call } from './call.ts'
import { onBehalfOf, type ProxyDependencies } from './dependencies.ts'
import type { CallOutcome } from './outcome.ts'
import { type PageStep, pages } from './pages.ts'
import type { AccountAccess, ProxyRequest } from './request.ts'

/** The engine: calls third-party APIs as their definitions describe them. Holds no state between calls. */
export interface Proxy {
  /** One call; of a list, one page. See `call`. */
  call(plan: Plan, account: AccountAccess, request: ProxyRequest): Promise<CallOutcome>
  /** A whole list, page by page, resumable. See `pages`. */
  pages(
    plan: Plan,
    account: AccountAccess,
    request: ProxyRequest,
    state?: JsonObject | null,
  ): AsyncGenerator<PageStep, void, void>
}

/** Ties the engine to its way out, its sandbox and its clock. */
export function createProxy(deps: ProxyDependencies): Proxy {
  return {
    call: (plan, account, request) => call(onBehalfOf(deps, account.environmentId), plan, account, request),
    pages: (plan, account, request, state) =>
      pages(onBehalfOf(deps, account.environmentId), plan, account, request, state),
  }
}
