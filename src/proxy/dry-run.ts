import type { Failure, Json } from '../base/index.ts'
import type { MethodPlan, Plan } from '../definitions/index.ts'
import {
  type AuthorizationEffect,
  decodeUtf8,
  type ListingState,
  listStopRules,
  type Pagination,
  pageParams,
  type StopRule,
} from '../formats/index.ts'
import { type Redactor, SECRET_MASK } from '../redaction/index.ts'
import { applyAuthorization, type BuiltRequest, buildRequest } from './build-request.ts'
import { singleOutcome } from './call.ts'
import { type CallContext, formatContext, templateScope } from './call-context.ts'
import { classifyResponse } from './classify-response.ts'
import type { DecodedResponse } from './decode-response.ts'
import type { CallDependencies } from './dependencies.ts'
import { type FetchedPage, initialState, processPageResponse, processUnpagedResponse } from './list-page.ts'
import type { CallOutcome, RateLimitedOutcome, UpstreamErrorOutcome } from './outcome.ts'
import type { AccountAccess, PreviewRequest } from './request.ts'
import { findSandboxError, findTarget } from './resolve-target.ts'
import { attemptsMax } from './retry.ts'

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

/** A request as it would be sent, secrets masked. */
export interface SentRequest {
  readonly method: string
  readonly url: string
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
}

/** A call that was thought through; nothing was sent. Every secret in it is `***`. */
export interface RequestPreview extends SentRequest {
  /** Changes something upstream; refused for sandbox accounts. */
  readonly isWrite: boolean
  /** Why the call would be refused instead of sent; absent when it would be sent. */
  readonly error: Failure | undefined
  /** Requests in all when the upstream fails in a way that passes. */
  readonly attemptsMax: number
  /** Present for lists. */
  readonly paging: PagingPreview | undefined
  /** What the sample would come to; absent where there is none. */
  readonly outcome: SampleOutcome | undefined
}

/** How a list is paged and why it would end. */
interface PagingPreview {
  /** `null`: the list is one page. */
  readonly format: string | null
  /** The page size that is asked for. */
  readonly limit: number | undefined
  /** In the order in which they are evaluated. */
  readonly stops: readonly StopRule[]
}

/** What an answer would come to. */
export interface SampleOutcome {
  readonly kind: CallOutcome['kind']
  /**
   * What `response_path` selects, of a list the records; of an error `{status, message, metadata, action, result?,
   * headers?}`, of a rate limit `{status, retry_after}`.
   */
  readonly result: Json
  /** The following are present for a page of a list: its records, and either why it is the last or how the next is asked for. */
  readonly recordCount?: number | undefined
  readonly stopReason?: string | undefined
  readonly next?: SentRequest | undefined
}

/** A call that was drafted. */
interface DryRunCall {
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
async function simulateResponse(
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
  { page: { records, state, stopReason } }: FetchedPage,
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

/** A request that is not sent. */
interface DryRunRequest {
  readonly masked: SentRequest
  /** As it is, without authorization parameters; never shown. */
  readonly url: string
}

/** Where a list is, and how it goes on from there. */
interface ListPosition {
  readonly pagination: Pagination
  readonly state: ListingState
}

/** Builds and authorises with the account's credentials, and masks the result. @param listing absent: not paged */
async function buildMaskedRequest(
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

/** A request for people's eyes: secrets in it masked, and everything that authorization puts on it. */
function maskRequest(built: BuiltRequest, effect: AuthorizationEffect, redaction: Redactor): SentRequest {
  const { body } = built
  const masked: BuiltRequest = {
    method: built.method,
    url: redaction.redactText(built.url),
    headers: mapValues(built.headers, (value) => redaction.redactText(value)),
    body: body === undefined ? undefined : redaction.redactText(typeof body === 'string' ? body : decodeUtf8(body)),
  }
  const { url, headers } = applyAuthorization(masked, {
    headers: mapValues(effect.headers, (value, name) => visibleScheme(name, value, redaction) + SECRET_MASK),
    query: mapValues(effect.query, () => SECRET_MASK),
  })
  return { method: masked.method, url, headers, body: masked.body?.toString() }
}

/** `Bearer ` and the like, which is no secret unless a credential says so. */
function visibleScheme(name: string, value: string, redaction: Redactor): string {
  const [scheme = ''] = name === 'authorization' ? (/^[a-z][\w-]{0,31} (?=.)/i.exec(value) ?? []) : []
  return redaction.redactText(value).startsWith(scheme) ? scheme : ''
}

function mapValues(
  values: Readonly<Record<string, string>>,
  change: (value: string, name: string) => string,
): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(value, name)]))
}
