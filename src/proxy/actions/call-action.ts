import type { Plan } from '../../definition/index.ts'
import type { CallDependencies } from '../dependencies.ts'
import { assertNoScalar, toRecords } from '../extract.ts'
import type { CallOutcome } from '../outcome.ts'
import type { PageStep } from '../pages.ts'
import type { AccountAccess } from '../request.ts'
import type { NamedActionRequest } from './action-run.ts'
import { assertNotReserved } from './find-action.ts'
import { runAction } from './run-action.ts'

/**
 * Runs an action for a caller; its outcome is that of its last step.
 *
 * @throws Failure as `call` does; METHOD_NOT_DEFINED also for the actions that are an account's own business
 */
export async function callAction(
  deps: CallDependencies,
  plan: Plan,
  account: AccountAccess,
  request: NamedActionRequest,
): Promise<CallOutcome> {
  assertNotReserved(request.target.action)
  const { outcome: end } = await runAction(deps, plan, account, request)
  if (end.kind === 'refused') throw end.failure
  return end
}

/**
 * An action as a list: of its records when the result is a list, else of its one result. Never paged.
 *
 * @throws Failure as `callAction` does; UPSTREAM_INVALID_RESPONSE when the result is a text
 */
export async function* actionPages(
  deps: CallDependencies,
  plan: Plan,
  account: AccountAccess,
  request: NamedActionRequest,
): AsyncGenerator<PageStep, void, void> {
  for (;;) {
    const outcome = await callAction(deps, plan, account, request)
    if (outcome.kind !== 'ok') yield { ...outcome, page: 1, state: null }
    else {
      const { result, rateLimit } = outcome
      if (typeof result === 'string') assertNoScalar(outcome, result)
      yield { kind: 'page', page: 1, records: toRecords(result), state: null, stopReason: 'unpaginated', rateLimit }
    }
    // Taking the next step after a rate limit runs the action once more.
    if (outcome.kind !== 'rate_limited') return
  }
}
