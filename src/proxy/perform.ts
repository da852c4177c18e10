import { randomBytes } from 'node:crypto'
import type { MethodPlan } from '../definition/index.ts'
import type { Scope } from '../expression/index.ts'
import type { AuthorizationTools, ListingTools, PageRequest } from '../formats/index.ts'
import { authorise } from './authorise.ts'
import { buildRequest } from './build.ts'
import { type DecodedResponse, decode } from './decode.ts'
import type { ProxyDependencies } from './dependencies.ts'
import { evaluateSetting } from './evaluate-setting.ts'
import { exchange } from './exchange.ts'
import type { RateLimitedOutcome, RateLimitInfo, UpstreamErrorOutcome } from './outcome.ts'
import { findRateLimit, rateLimited, readRateLimit } from './rate-limit.ts'
import type { AccountAccess, ProxyRequest } from './request.ts'
import type { ResolvedTarget } from './resolve-target.ts'
import { retryAfterOf, withRetries } from './retry.ts'
import { judge } from './upstream-error.ts'

/** One call, from its method to what its placeholders see. */
export interface Job {
  readonly target: ResolvedTarget
  readonly request: ProxyRequest
  readonly scope: Scope
}

/** What one request came to, before its result is taken out. */
export type Answer = Success | RateLimitedOutcome | UpstreamErrorOutcome

export interface Success {
  readonly kind: 'success'
  readonly response: DecodedResponse
  readonly rateLimit: RateLimitInfo | undefined
  /** What was requested, without authorization parameters. */
  readonly url: string
  /** The status says that the list is over; there is nothing to take out. */
  readonly isPastEnd: boolean
}

/** What an attempt came to, and how long the upstream asked to wait before another. */
export interface Attempt {
  readonly answer: Answer
  readonly retryAfterSeconds: number | undefined
}

/** Sends one request, again where the definition allows it. @throws Failure of any stage */
export function perform(deps: ProxyDependencies, job: Job, page?: PageRequest): Promise<Answer> {
  return withRetries(deps, job, () => attempt(deps, job, page))
}

/** The stages of one request, in order. */
async function attempt(deps: ProxyDependencies, job: Job, page: PageRequest | undefined): Promise<Attempt> {
  const { method } = job.target
  const scope = page === undefined ? job.scope : { ...job.scope, pagination: page.values }
  const tools = toolsOf(deps, 'authorization')
  const built = buildRequest(job.target, job.request, scope, page, tools.nonce)
  const ready = await authorise(method, built, scope, tools)
  const response = decode(method, await exchange(deps.http, ready, job.request))
  const rateLimit = await readRateLimit(deps, method.rateLimit, response)
  const limited = await findRateLimit(deps, method.rateLimit, response, rateLimit)
  if (limited !== undefined) return final(limited)
  if (isPastEnd(method, response))
    return final({ kind: 'success', response, rateLimit, url: ready.publicUrl, isPastEnd: true })
  const judged = await judge(deps.evaluator, method, response, rateLimit)
  switch (judged.kind) {
    case 'success':
      return final({ kind: 'success', response: judged.response, rateLimit, url: ready.publicUrl, isPastEnd: false })
    case 'rate_limited':
      return final(await rateLimited(deps, method.rateLimit, response, rateLimit, judged.retryAfterSeconds))
    case 'error':
      return {
        answer: judged.outcome,
        retryAfterSeconds: judged.retryAfterSeconds ?? retryAfterOf(deps.clock, response),
      }
  }
}

/** What formats may use during a call. @param setting whose expressions are evaluated, for messages */
export function toolsOf(deps: ProxyDependencies, setting: 'authorization' | 'pagination'): AuthorizationTools {
  return {
    evaluate: (expression, input) => evaluateSetting(deps.evaluator, setting, expression, input),
    now: () => deps.clock.now(),
    nonce: deps.nonce ?? randomNonce,
  }
}

/** What paging may use during a call. */
export function listingTools(deps: ProxyDependencies, scope: Scope): ListingTools {
  const { evaluate, now } = toolsOf(deps, 'pagination')
  return { evaluate, now, scope }
}

/** What the placeholders of a call see. */
export function scopeOf(account: AccountAccess, request: ProxyRequest): Scope {
  const { id, query, body, args, resources, previousRunDate } = request
  return { account, call: { id, query, body, args, resources, previousRunDate } }
}

function isPastEnd(method: MethodPlan, { status }: DecodedResponse): boolean {
  return status === method.pagination?.paginator.endStatus
}

function final(answer: Answer): Attempt {
  return { answer, retryAfterSeconds: undefined }
}

function randomNonce(): string {
  return randomBytes(16).toString('hex')
}
