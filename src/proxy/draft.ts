import { type ListingState, type Pagination, pageParams } from '../formats/index.ts'
import { buildRequest } from './build.ts'
import type { CallDependencies } from './dependencies.ts'
import { type CallContext, formatContext, templateScope } from './job.ts'
import { maskRequest } from './masked-request.ts'
import type { SentRequest } from './request-preview.ts'

/** A request that is not sent. */
export interface DryRunRequest {
  readonly masked: SentRequest
  /** As it is, without authorization parameters; never shown. */
  readonly url: string
}

/** Where a list is, and how it goes on from there. */
export interface ListPosition {
  readonly pagination: Pagination
  readonly state: ListingState
}

/** Builds and authorises with the account's credentials, and masks the result. @param listing absent: not paged */
export async function buildMaskedRequest(
  deps: CallDependencies,
  job: CallContext,
  listing: ListPosition | undefined,
): Promise<DryRunRequest> {
  const page = listing === undefined ? undefined : pageParams(listing.pagination, listing.state)
  const scope = templateScope(job, page?.values)
  const tools = formatContext(deps, 'authorization')
  const built = buildRequest(job.target, job.request, scope, page, tools.nonce)
  const effect = await job.target.method.authorize(built, scope, tools)
  return { masked: maskRequest(built, effect, deps.redaction), url: built.url }
}
