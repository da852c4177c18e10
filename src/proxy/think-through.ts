import { singleOutcome } from './call.ts'
import type { DecodedResponse } from './decode.ts'
import type { CallDependencies } from './dependencies.ts'
import { type Draft, draftRequest, type Listing } from './draft.ts'
import type { Job } from './job.ts'
import { judgeAnswer } from './judge-answer.ts'
import { digestAnswer, type FetchedPage, wholeAnswer } from './list-page.ts'
import type { RateLimitedOutcome, UpstreamErrorOutcome } from './outcome.ts'
import type { SampleOutcome } from './request-preview.ts'

/** A call that was drafted. */
export interface DraftedCall {
  readonly job: Job
  readonly draft: Draft
  /** Absent for what is not paged. */
  readonly listing: Listing | undefined
}

/**
 * What an answer to a drafted request would come to: rate limit → error → extract, and of a list the request for the page
 * after it.
 *
 * @throws Failure EXPRESSION_FAILED, PAGINATION_LOOP, PAGINATION_ORIGIN
 */
export async function thinkThrough(
  deps: CallDependencies,
  call: DraftedCall,
  response: DecodedResponse,
): Promise<SampleOutcome> {
  const { job, draft, listing } = call
  const { method } = job.target
  const { answer } = await judgeAnswer(deps, method, response, draft.url)
  if (!method.isList) {
    const outcome = await singleOutcome(deps, job, answer)
    return outcome.kind === 'ok' ? { kind: 'ok', result: outcome.result } : refusal(outcome)
  }
  const listed =
    listing === undefined
      ? await wholeAnswer(deps, job, answer)
      : await digestAnswer(deps, job, listing.pagination, listing.state, answer)
  return listed.kind === 'page' ? pageOutcome(deps, call, listed) : refusal(listed)
}

async function pageOutcome(
  deps: CallDependencies,
  { job, listing }: DraftedCall,
  { records, state, stopReason }: FetchedPage,
): Promise<SampleOutcome> {
  const next = listing === undefined || state === null ? undefined : { ...listing, state }
  return {
    kind: 'ok',
    result: [...records],
    recordCount: records.length,
    stopReason,
    next: next === undefined ? undefined : (await draftRequest(deps, job, next)).shown,
  }
}

function refusal(outcome: RateLimitedOutcome | UpstreamErrorOutcome): SampleOutcome {
  const { kind, status } = outcome
  if (kind === 'rate_limited') return { kind, result: { status, retry_after: outcome.retryAfterSeconds } }
  const { message, metadata, action, ownHeaders, result } = outcome
  const given = { ...(result === undefined ? {} : { result }), ...(isEmpty(ownHeaders) ? {} : { headers: ownHeaders }) }
  return { kind, result: { status, message, metadata, action, ...given } }
}

function isEmpty(values: object): boolean {
  return Object.keys(values).length === 0
}
