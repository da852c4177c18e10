import type { Plan } from '../definitions/index.ts'
import type { Pagination } from '../formats/index.ts'
import { type CallContext, createCallContext } from './call-context.ts'
import type { CallDependencies } from './dependencies.ts'
import { extractResult } from './extract.ts'
import { encodeCursor, fetchPage, fetchUnpaged, initialState, type ListPageOutcome } from './list-page.ts'
import type { CallOutcome, ClassifiedResponse } from './outcome.ts'
import type { AccountAccess, ProxyRequest } from './request.ts'
import { sendWithRetries } from './send.ts'

/**
 * One call: resolve → build → authorise → budget → send → decode → rate limit → error → retry → extract.
 *
 * Of a list it answers one page, with a cursor to the next.
 *
 * @throws Failure by the stage that refused: METHOD_NOT_DEFINED, SANDBOX_ACCOUNT_READ_ONLY, PLACEHOLDER_UNRESOLVED,
 * PAGE_TOKEN_INVALID, PAGINATION_LOOP, PAGINATION_ORIGIN, EXPRESSION_FAILED, EGRESS_BLOCKED, UPSTREAM_UNREACHABLE,
 * UPSTREAM_INVALID_RESPONSE, DEADLINE_EXCEEDED, CANCELLED, DEFINITION_INVALID, INVALID_FIELD, TOKEN_REQUEST_FAILED
 */
export async function call(
  deps: CallDependencies,
  plan: Plan,
  account: AccountAccess,
  request: ProxyRequest,
): Promise<CallOutcome> {
  const job = createCallContext(plan, account, request)
  const { isList, pagination } = job.target.method
  if (!isList) return singleOutcome(deps, job, await sendWithRetries(deps, job))
  const page = pagination === undefined ? await fetchUnpaged(deps, job) : await callPage(deps, job, pagination)
  return toCallOutcome(page)
}

/** What the answer of a call that is no list comes to. @throws Failure EXPRESSION_FAILED */
export async function singleOutcome(
  deps: CallDependencies,
  job: CallContext,
  answer: ClassifiedResponse,
): Promise<CallOutcome> {
  switch (answer.kind) {
    case 'rate_limited':
      return answer
    case 'upstream_error': {
      if (answer.action !== 'ignore' && answer.action !== 'stop') return answer
      const { status, headers, body, rateLimit } = answer
      return { kind: 'ok', status, headers, body, result: null, page: undefined, rateLimit }
    }
    case 'success': {
      const result = await extractResult(deps.evaluator, job.target.method, answer.response.body)
      return { kind: 'ok', ...answer.response, result, page: undefined, rateLimit: answer.rateLimit }
    }
  }
}

async function callPage(deps: CallDependencies, job: CallContext, pagination: Pagination): Promise<ListPageOutcome> {
  return fetchPage(deps, job, pagination, await initialState(deps, job, pagination))
}

function toCallOutcome(outcome: ListPageOutcome): CallOutcome {
  if (outcome.kind !== 'page') return outcome
  const { page, response, previous } = outcome
  const { records, state, stopReason, rateLimit } = page
  const nextCursor = state === null ? null : encodeCursor(state)
  const previousCursor = previous === undefined ? undefined : encodeCursor(previous)
  return { kind: 'ok', ...response, result: records, page: { nextCursor, previousCursor, stopReason }, rateLimit }
}
