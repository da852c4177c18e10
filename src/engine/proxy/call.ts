import type { Plan } from '../definitions/plan.ts'
import type { ListingState } from '../formats/pagination/listing.ts'
import { type CallContext, createCallContext } from './call-context.ts'
import { encodeCursor, listOf } from './cursor.ts'
import type { CallDependencies } from './dependencies.ts'
import { extractResult } from './extract.ts'
import { fetchPage, fetchUnpaged, initialState, type ListPageOutcome } from './list-page.ts'
import type { CallOutcome, ClassifiedResponse, SuccessOutcome } from './outcome.ts'
import type { AccountAccess, ProxyRequest } from './request.ts'
import { sendWithRetries } from './send.ts'

/**
 * One call: resolve, build, authorize, acquire a permit, send, decode, classify, retry, extract. Of a list it reads one page,
 * with a cursor to the next.
 *
 * @throws Failure of the stage that failed: METHOD_NOT_DEFINED, SANDBOX_ACCOUNT_READ_ONLY, PLACEHOLDER_UNRESOLVED,
 * PAGE_TOKEN_INVALID, PAGINATION_LOOP, PAGINATION_ORIGIN, EXPRESSION_FAILED, EGRESS_BLOCKED, UPSTREAM_UNREACHABLE,
 * UPSTREAM_INVALID_RESPONSE, DEADLINE_EXCEEDED, CANCELLED, DEFINITION_INVALID, INVALID_FIELD, TOKEN_REQUEST_FAILED
 */
export async function call(
  deps: CallDependencies,
  plan: Plan,
  account: AccountAccess,
  request: ProxyRequest,
): Promise<CallOutcome> {
  const context = createCallContext(plan, account, request)
  deps.requestLine.planned(context.target)
  const { isList, pagination } = context.target.method
  if (!isList) return singleOutcome(deps, context, await sendWithRetries(deps, context))
  if (pagination === undefined) return toCallOutcome(deps, context, await fetchUnpaged(deps, context))
  const state = await initialState(deps, context, pagination)
  return toCallOutcome(deps, context, await fetchPage(deps, context, pagination, state))
}

/** The outcome of a call that is no list. @throws Failure EXPRESSION_FAILED */
export async function singleOutcome(
  deps: CallDependencies,
  context: CallContext,
  classified: ClassifiedResponse,
): Promise<CallOutcome> {
  switch (classified.kind) {
    case 'rate_limited':
      return classified
    case 'upstream_error': {
      if (classified.action !== 'ignore' && classified.action !== 'stop') return classified
      const { status, headers, body, rateLimit } = classified
      return { kind: 'ok', status, headers, body, result: null, page: undefined, rateLimit }
    }
    case 'success': {
      const result = await extractResult(deps.evaluator, context.target.method, classified.response.body)
      return { kind: 'ok', ...classified.response, result, page: undefined, rateLimit: classified.rateLimit }
    }
  }
}

/**
 * The answer that the caller of the method itself gets where the status alone says that it is an error (`isPassedOn`): status,
 * headers and body of the third party, credentials masked. `undefined` for any other outcome.
 */
export function findPassedOn(outcome: CallOutcome): SuccessOutcome | undefined {
  if (outcome.kind !== 'upstream_error' || !outcome.isPassedOn) return undefined
  const { status, headers, body, rateLimit } = outcome
  return { kind: 'ok', status, headers, body, result: body, page: undefined, rateLimit }
}

function toCallOutcome({ sealer }: CallDependencies, context: CallContext, outcome: ListPageOutcome): CallOutcome {
  if (outcome.kind !== 'page') return outcome
  const { page, response, previous } = outcome
  const { records, state, stopReason, rateLimit } = page
  const encode = (position: ListingState) => encodeCursor(sealer, listOf(context), position)
  const nextCursor = state === null ? null : encode(state)
  const previousCursor = previous && encode(previous)
  return { kind: 'ok', ...response, result: records, page: { nextCursor, previousCursor, stopReason }, rateLimit }
}
