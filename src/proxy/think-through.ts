import { singleOutcome } from './call.ts'
import type { DecodedResponse } from './decode.ts'
import type { CallDependencies } from './dependencies.ts'
import { buildMaskedRequest, type DryRunRequest, type ListPosition } from './draft.ts'
import type { CallContext } from './job.ts'
import { classifyResponse } from './judge-answer.ts'
import { type FetchedPage, processPageResponse, processUnpagedResponse } from './list-page.ts'
import type { RateLimitedOutcome, UpstreamErrorOutcome } from './outcome.ts'
import type { SampleOutcome } from './request-preview.ts'

/** A call that was drafted. */
export interface DryRunCall {
  readonly job: CallContext
  readonly request: DryRunRequest
  /** Absent for what is not paged. */
  readonly listing: ListPosition | undefined
}

/**
 * What an answer to a drafted request would come to: rate limit → error → extract, and of a list the request for the page
 * after it.
 *
 * @throws Failure EXPRESSION_FAILED, PAGINATION_LOOP, PAGINATION_ORIGIN
 */
export async function simulateResponse(
  deps: CallDependencies,
  call: DryRunCall,
  response: DecodedResponse,
): Promise<SampleOutcome> {
  const { job, request: draft, listing } = call
  const { method } = job.target
  const { outcome: answer } = await classifyResponse(deps, method, response, draft.url)
  if (!method.isList) {
    const outcome = await singleOutcome(deps, job, answer)
    return outcome.kind === 'ok' ? { kind: 'ok', result: outcome.result } : errorOutcome(outcome)
  }
  const listed =
    listing === undefined
      ? await processUnpagedResponse(deps, job, answer)
      : await processPageResponse(deps, job, listing.pagination, listing.state, answer)
  return listed.kind === 'page' ? simulatedPage(deps, call, listed) : errorOutcome(listed)
}

async function simulatedPage(
  deps: CallDependencies,
  { job, listing }: DryRunCall,
  { records, state, stopReason }: FetchedPage,
): Promise<SampleOutcome> {
  const next = listing === undefined || state === null ? undefined : { ...listing, state }
  return {
    kind: 'ok',
    result: [...records],
    recordCount: records.length,
    stopReason,
    next: next === undefined ? undefined : (await buildMaskedRequest(deps, job, next)).masked,
  }
}

function errorOutcome(outcome: RateLimitedOutcome | UpstreamErrorOutcome): SampleOutcome {
  const { kind, status } = outcome
  if (kind === 'rate_limited') return { kind, result: { status, retry_after: outcome.retryAfterSeconds } }
  const { message, metadata, action, ownHeaders, result } = outcome
  const given = { ...(result === undefined ? {} : { result }), ...(isEmpty(ownHeaders) ? {} : { headers: ownHeaders }) }
  return { kind, result: { status, message, metadata, action, ...given } }
}

function isEmpty(values: object): boolean {
  return Object.keys(values).length === 0
}
