import type { Failure } from '../../foundation/base/index.ts'
import type { Json } from '../../foundation/json/index.ts'
import { type Redactor, SECRET_MASK } from '../../foundation/redaction/index.ts'
import type { MethodPlan, Plan } from '../definitions/plan.ts'
import type { AuthorizationEffect } from '../formats/authorization/authorization.ts'
import { type ListingState, pageParams } from '../formats/pagination/listing.ts'
import type { Pagination, StopRule } from '../formats/pagination/paginator.ts'
import { listStopRules } from '../formats/pagination/rules.ts'
import { decodeUtf8 } from '../formats/response/response.ts'
import { applyAuthorization, type BuiltRequest, buildRequest } from './build-request.ts'
import { singleOutcome } from './call.ts'
import { type CallContext, formatContext, templateScope } from './call-context.ts'
import { classifyResponse } from './classify-response.ts'
import type { DecodedResponse } from './decode-response.ts'
import type { CallDependencies } from './dependencies.ts'
import { type FetchedPage, initialState, processPageResponse, processUnpagedResponse } from './list-page.ts'
import type { CallOutcome, RateLimitedOutcome, UpstreamErrorOutcome } from './outcome.ts'
import type { AccountAccess, PreviewRequest } from './request.ts'
import { findTarget, findWriteError } from './resolve-target.ts'
import { attemptsMax } from './retry.ts'

/** A request as it would be sent, secrets masked. */
export interface SentRequest {
  readonly method: string
  readonly url: string
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
}

/** The result of a dry run. Every secret in it is `***`. */
export interface RequestPreview extends SentRequest {
  /** Changes something upstream; rejected for sandbox accounts. */
  readonly isWrite: boolean
  /** The error that the call would throw instead of sending; absent when it would be sent. */
  readonly error: Failure | undefined
  /** Attempts in all on transient errors. */
  readonly attemptsMax: number
  /** Present for lists. */
  readonly paging: PagingPreview | undefined
  /** Outcome of the sample response; absent without one. */
  readonly outcome: SampleOutcome | undefined
}

/** Paging of a list. */
interface PagingPreview {
  /** Pagination format; `null`: the list is one page. */
  readonly format: string | null
  /** Page size of the request. */
  readonly limit: number | undefined
  /** Stop rules in the order of their evaluation. */
  readonly stops: readonly StopRule[]
}

/** Outcome of a sample response. */
export interface SampleOutcome {
  readonly kind: CallOutcome['kind']
  /**
   * The part that `response_path` selects, of a list the records; of an error `{status, message, metadata, action, result?,
   * headers?, passed_on?}`, of a rate limit `{status, retry_after}`.
   */
  readonly result: Json
  /** Present for a page of a list, with either `stopReason` or `next`. */
  readonly recordCount?: number | undefined
  readonly stopReason?: string | undefined
  readonly next?: SentRequest | undefined
}

/** A call, its masked request, and the page of a list that it reads. */
interface DryRunCall {
  readonly context: CallContext
  readonly request: DryRunRequest
  /** Absent when the method is not paged. */
  readonly listing: ListPosition | undefined
}

interface DryRunRequest {
  readonly masked: SentRequest
  /** Unmasked, without authorization parameters; for internal use only. */
  readonly url: string
}

interface ListPosition {
  readonly pagination: Pagination
  readonly state: ListingState
}

/**
 * Dry run: builds and authorizes the request with the account's credentials and masks it, then runs a sample response through
 * classification, extraction and paging. Nothing is sent, no credential refreshed, no rate limit used, nothing reported.
 *
 * The result of a sample is not masked.
 *
 * @throws Failure as `call` does, except the failures of sending; METHOD_NOT_DEFINED for an action
 */
export async function preview(
  deps: CallDependencies,
  plan: Plan,
  account: AccountAccess,
  request: PreviewRequest,
): Promise<RequestPreview> {
  const context: CallContext = { target: findTarget(plan, request.target), request, access: account }
  const { method } = context.target
  const listing = await initialPosition(deps, context)
  const dryRun = await buildMaskedRequest(deps, context, listing)
  const sample = resolveSample(method, request)
  return {
    ...dryRun.masked,
    isWrite: method.isWrite,
    error: findWriteError(account, context.target.method),
    attemptsMax: attemptsMax(method, request.limits),
    paging: method.isList ? describePaging(method, listing) : undefined,
    outcome:
      sample === undefined ? undefined : await simulateResponse(deps, { context, request: dryRun, listing }, sample),
  }
}

async function initialPosition(deps: CallDependencies, context: CallContext): Promise<ListPosition | undefined> {
  const { pagination } = context.target.method
  return pagination === undefined ? undefined : { pagination, state: await initialState(deps, context, pagination) }
}

/** The sample of the caller with lower-case header names, else the example of the definition. */
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

/** Errors are classified before the stop rules of the pagination are evaluated. */
const IGNORED_ERROR_RULES: readonly StopRule[] = [
  { reason: 'error_ignored', when: 'error_expression answers with the action "ignore"' },
  { reason: 'error_stopped', when: 'error_expression answers with the action "stop"' },
]
const UNPAGED_RULE: StopRule = { reason: 'unpaginated', when: 'its only page was read' }

/**
 * The outcome of a response to the request of a dry run, and of a list the request for the next page.
 *
 * @throws Failure EXPRESSION_FAILED, PAGINATION_LOOP, PAGINATION_ORIGIN
 */
async function simulateResponse(
  deps: CallDependencies,
  call: DryRunCall,
  response: DecodedResponse,
): Promise<SampleOutcome> {
  const { context, request, listing } = call
  const { method } = context.target
  const { outcome: classified } = await classifyResponse(deps, method, response, request.url, true)
  if (!method.isList) {
    const outcome = await singleOutcome(deps, context, classified)
    return outcome.kind === 'ok' ? { kind: 'ok', result: outcome.result } : errorOutcome(outcome)
  }
  const listed =
    listing === undefined
      ? await processUnpagedResponse(deps, context, classified)
      : await processPageResponse(deps, context, listing.pagination, listing.state, classified)
  return listed.kind === 'page' ? simulatedPage(deps, call, listed) : errorOutcome(listed)
}

async function simulatedPage(
  deps: CallDependencies,
  { context, listing }: DryRunCall,
  { page: { records, state, stopReason } }: FetchedPage,
): Promise<SampleOutcome> {
  const next = listing === undefined || state === null ? undefined : { ...listing, state }
  return {
    kind: 'ok',
    result: [...records],
    recordCount: records.length,
    stopReason,
    next: next === undefined ? undefined : (await buildMaskedRequest(deps, context, next)).masked,
  }
}

function errorOutcome(outcome: RateLimitedOutcome | UpstreamErrorOutcome): SampleOutcome {
  const { kind, status } = outcome
  if (kind === 'rate_limited') return { kind, result: { status, retry_after: outcome.retryAfterSeconds } }
  const { message, metadata, action, ownHeaders, result, isPassedOn } = outcome
  if (isPassedOn) return { kind, result: { status, message, metadata, action, passed_on: true } }
  const given = { ...(result === undefined ? {} : { result }), ...(isEmpty(ownHeaders) ? {} : { headers: ownHeaders }) }
  return { kind, result: { status, message, metadata, action, ...given } }
}

function isEmpty(values: object): boolean {
  return Object.keys(values).length === 0
}

/** Builds and authorizes a request with the account's credentials, and masks it. @param listing absent: not paged */
async function buildMaskedRequest(
  deps: CallDependencies,
  context: CallContext,
  listing: ListPosition | undefined,
): Promise<DryRunRequest> {
  const page = listing === undefined ? undefined : pageParams(listing.pagination, listing.state)
  const scope = templateScope(context, page?.values)
  const authorization = formatContext(deps, 'authorization')
  const built = buildRequest(context.target, context.request, scope, page, authorization.nonce)
  const effect = await context.target.method.authorize(built, scope, authorization)
  return { masked: maskRequest(built, effect, deps.redaction), url: built.url }
}

/** Masks the secrets of a request, and every value that authorization adds. */
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

/** The authentication scheme (`Bearer `), which stays visible unless a credential contains it. */
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
