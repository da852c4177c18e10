import type { MethodPlan, Plan } from '../definition/index.ts'
import { listStopRules, type StopRule } from '../formats/index.ts'
import type { DecodedResponse } from './decode.ts'
import type { CallDependencies } from './dependencies.ts'
import { buildMaskedRequest, type ListPosition } from './draft.ts'
import type { CallContext } from './job.ts'
import { initialState } from './list-page.ts'
import type { AccountAccess, PreviewRequest } from './request.ts'
import type { PagingPreview, RequestPreview } from './request-preview.ts'
import { findSandboxError, findTarget } from './resolve-target.ts'
import { attemptsMax } from './retry.ts'
import { simulateResponse } from './think-through.ts'

/**
 * A call without sending anything: resolve → build → authorise with the account's credentials, then masked; and a sample
 * answer through rate limit → error → extract → next page.
 *
 * No credential is renewed, no budget used, nothing noted about the account. The result of a sample is the sample's own and
 * is not masked.
 *
 * @throws Failure as `call` does, but for what the way out and back may throw; METHOD_NOT_DEFINED for an action
 */
export async function preview(
  deps: CallDependencies,
  plan: Plan,
  account: AccountAccess,
  request: PreviewRequest,
): Promise<RequestPreview> {
  const job: CallContext = { target: findTarget(plan, request.target), request, access: account }
  const { method } = job.target
  const listing = await initialPosition(deps, job)
  const draft = await buildMaskedRequest(deps, job, listing)
  const sample = resolveSample(method, request)
  return {
    ...draft.masked,
    isWrite: method.isWrite,
    error: findSandboxError(account, job.target),
    attemptsMax: attemptsMax(method, request.limits),
    paging: method.isList ? describePaging(method, listing) : undefined,
    outcome: sample === undefined ? undefined : await simulateResponse(deps, { job, request: draft, listing }, sample),
  }
}

async function initialPosition(deps: CallDependencies, job: CallContext): Promise<ListPosition | undefined> {
  const { pagination } = job.target.method
  return pagination === undefined ? undefined : { pagination, state: await initialState(deps, job, pagination) }
}

/** The caller's sample, its header names as an answer has them; else the example of the definition. */
function resolveSample({ exampleResponse }: MethodPlan, { sample }: PreviewRequest): DecodedResponse | undefined {
  if (sample === undefined)
    return exampleResponse === undefined ? undefined : { status: 200, headers: {}, body: exampleResponse }
  const headers = Object.entries(sample.headers).map(([name, value]) => [name.toLowerCase(), value])
  return { ...sample, headers: Object.fromEntries(headers) }
}

function describePaging(method: MethodPlan, listing: ListPosition | undefined): PagingPreview {
  const errors = method.errorExpression === undefined ? [] : IGNORED_ERROR_RULES
  if (listing === undefined) return { format: null, limit: undefined, stops: [...errors, UNPAGED_RULE] }
  const { pagination, state } = listing
  return {
    format: pagination.format,
    limit: state.limit ?? undefined,
    stops: [...errors, ...listStopRules(pagination)],
  }
}

/** Errors are told before anything else about a page is looked at. */
const IGNORED_ERROR_RULES: readonly StopRule[] = [
  { reason: 'error_ignored', when: 'error_expression answers with the action "ignore"' },
  { reason: 'error_stopped', when: 'error_expression answers with the action "stop"' },
]
const UNPAGED_RULE: StopRule = { reason: 'unpaginated', when: 'its only page was read' }
