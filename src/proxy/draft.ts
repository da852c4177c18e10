import { describePage, type ListingState, type Pagination } from '../formats/index.ts'
import { buildRequest } from './build.ts'
import type { CallDependencies } from './dependencies.ts'
import { type Job, scopeOf, toolsOf } from './job.ts'
import { maskedRequest } from './masked-request.ts'
import type { SentRequest } from './request-preview.ts'

/** A request that is not sent. */
export interface Draft {
  readonly shown: SentRequest
  /** As it is, without authorization parameters; never shown. */
  readonly url: string
}

/** Where a list is, and how it goes on from there. */
export interface Listing {
  readonly pagination: Pagination
  readonly state: ListingState
}

/** Builds and authorises with the account's credentials, and masks the result. @param listing absent: not paged */
export async function draftRequest(deps: CallDependencies, job: Job, listing: Listing | undefined): Promise<Draft> {
  const page = listing === undefined ? undefined : describePage(listing.pagination, listing.state)
  const scope = scopeOf(job, page?.values)
  const tools = toolsOf(deps, 'authorization')
  const built = buildRequest(job.target, job.request, scope, page, tools.nonce)
  const effect = await job.target.method.authorise(built, scope, tools)
  return { shown: maskedRequest(built, effect, deps.redaction), url: built.url }
}
