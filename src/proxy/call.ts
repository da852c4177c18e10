import type { Plan } from '../definition/index.ts'
import { type Pagination, startListing } from '../formats/index.ts'
import { readCursor, writeCursor } from './cursor.ts'
import type { ProxyDependencies } from './dependencies.ts'
import { extract } from './extract.ts'
import { fetchPage, fetchWhole, type ListedPage } from './list-page.ts'
import type { CallOutcome } from './outcome.ts'
import { type Job, listingTools, perform, scopeOf } from './perform.ts'
import type { AccountAccess, ProxyRequest } from './request.ts'
import { resolveTarget } from './resolve-target.ts'

/**
 * One call: resolve → build → authorise → send → decode → rate limit → error → retry → extract.
 *
 * Of a list it answers one page, with a cursor to the next.
 *
 * @throws Failure by the stage that refused: METHOD_NOT_DEFINED, SANDBOX_ACCOUNT_READ_ONLY, PLACEHOLDER_UNRESOLVED,
 * PAGE_TOKEN_INVALID, PAGINATION_LOOP, PAGINATION_ORIGIN, EXPRESSION_FAILED, EGRESS_BLOCKED, UPSTREAM_UNREACHABLE,
 * UPSTREAM_INVALID_RESPONSE, DEADLINE_EXCEEDED, CANCELLED, DEFINITION_INVALID, INVALID_FIELD
 */
export async function call(
  deps: ProxyDependencies,
  plan: Plan,
  account: AccountAccess,
  request: ProxyRequest,
): Promise<CallOutcome> {
  const target = resolveTarget(plan, account, request.target)
  const job: Job = { target, request, scope: scopeOf(account, request) }
  if (!target.method.isList) return callOnce(deps, job)
  const { pagination } = target.method
  const page = pagination === undefined ? await fetchWhole(deps, job) : await callPage(deps, job, pagination)
  return listOutcome(page)
}

async function callOnce(deps: ProxyDependencies, job: Job): Promise<CallOutcome> {
  const answer = await perform(deps, job)
  switch (answer.kind) {
    case 'rate_limited':
      return answer
    case 'upstream_error': {
      if (answer.action !== 'ignore' && answer.action !== 'stop') return answer
      const { status, headers, body, rateLimit } = answer
      return { kind: 'ok', status, headers, body, result: null, page: undefined, rateLimit }
    }
    case 'success': {
      const result = await extract(deps.evaluator, job.target.method, answer.response.body)
      return { kind: 'ok', ...answer.response, result, page: undefined, rateLimit: answer.rateLimit }
    }
  }
}

async function callPage(deps: ProxyDependencies, job: Job, pagination: Pagination): Promise<ListedPage> {
  const { cursor, limit } = job.request.page ?? {}
  const state =
    cursor === undefined
      ? await startListing(pagination, limit, listingTools(deps, job.scope))
      : readCursor(pagination, cursor)
  return fetchPage(deps, job, pagination, state)
}

function listOutcome(page: ListedPage): CallOutcome {
  if (page.kind !== 'page') return page
  const { status, headers, body, records, state, previous, stopReason, rateLimit } = page
  const nextCursor = state === null ? null : writeCursor(state)
  const previousCursor = previous === undefined ? undefined : writeCursor(previous)
  return {
    kind: 'ok',
    status,
    headers,
    body,
    result: records,
    page: { nextCursor, previousCursor, stopReason },
    rateLimit,
  }
}
