import { Failure } from '../../../foundation/base/index.ts'
import { assertScope, type PresentedToken, type Principal } from '../../../platform/tenancy/index.ts'
import { type Access, concernsEnvironment } from '../access.ts'
import { callerKey, callerOf, lookUpAgainKey } from '../caller.ts'
import type { Exchange } from '../exchange.ts'
import type { RequestContext } from '../request-context.ts'
import type { RateLimiter } from './rate-limiter.ts'

/** Who may send a request, with which scope, and how many units of the rate limit it takes. */
export interface AdmissionRule {
  readonly access: Access
  /** The scope that an API token needs; absent: none, as for what needs no token. */
  readonly scope: string | undefined
  readonly cost: number
}

/**
 * Authenticates and authorizes a request before a byte of its body is read: rate limit, then token, then the access rule
 * of the operation. Every protocol and every HTTP route passes here, and nowhere else.
 *
 * A token that was valid at its last look-up counts against its own limit before it is looked up again. Any other one is
 * looked up by `TokenLookUps`: it counts against the limit of its client address when it turns out to be invalid, once for
 * all requests that presented it meanwhile; a valid one never does.
 *
 * @throws Failure TOKEN_MISSING, TOKEN_INVALID, RATE_LIMITED, ENVIRONMENT_REQUIRED, TEAM_TOKEN_REQUIRED, SCOPE_REQUIRED,
 *   RESOURCE_NOT_FOUND for an environment of another team
 */
export async function authenticate(exchange: LimitedExchange, rule: AdmissionRule): Promise<void> {
  const { access, cost } = rule
  const { accessControl } = exchange.server
  const { context } = exchange
  if (access === 'public') return
  if (context.token !== undefined) {
    // A call that another request carries: that one was authenticated, and counted as an ordinary call.
    consumeTokenLimit(exchange, callerOf(context).tokenId, cost - 1)
    return assertAccess(rule, callerOf(context))
  }
  const text = bearerToken(context)
  if (text === undefined) {
    limitAddress(exchange)
    throw new Failure('TOKEN_MISSING', 'send an API token in the header "Authorization: Bearer <token>"')
  }
  const token = accessControl.authenticator.parseToken(text)
  const link =
    access === 'environment_or_link' && token?.knownId === undefined ? await findLink(exchange, text, cost) : undefined
  const caller = link ?? (await authenticateApiToken(exchange, token, cost))
  context.setCaller(caller, token)
  assertAccess(rule, caller)
  accessControl.reauthenticator.start()
}

/**
 * Counts the size of a caller's body against the limit of its token: a unit for each whole `UNIT_BYTES`, beside those of the
 * operation.
 *
 * @throws Failure RATE_LIMITED
 */
export function chargeSize(exchange: LimitedExchange, bytes: number): void {
  consumeTokenLimit(exchange, callerOf(exchange.context).tokenId, Math.floor(bytes / UNIT_BYTES))
}

/** Counts the size of an answer, as that of a body, after it was made: requests that come next, or wait, are limited by it. */
export function chargeAnswer({ server, context, operationPath }: LimitedExchange, bytes: number): void {
  const units = Math.floor(bytes / UNIT_BYTES)
  const caller = context.values.get(callerKey)
  // Answers of third parties are limited by the limits of the account.
  if (units === 0 || caller === undefined || PROXIED.test(operationPath)) return
  const { tokenLimiter, clock } = server.accessControl
  tokenLimiter.charge(caller.tokenId, clock.monotonicMs(), units)
}

/**
 * Checks a request that has waited for its turn: answers that were made meanwhile may have used up what its token may use.
 *
 * @throws Failure RATE_LIMITED
 */
export function assertWithinLimit({ server, context }: Pick<LimitedExchange, 'server' | 'context'>): void {
  const caller = context.values.get(callerKey)
  if (caller === undefined) return
  const { tokenLimiter, clock } = server.accessControl
  if (!tokenLimiter.isOverdrawn(caller.tokenId, clock.monotonicMs())) return
  const message =
    'the answers to this token are larger than its limit allows; wait before the next request, ask for less'
  throw new Failure('RATE_LIMITED', message, { retryAfterSeconds: ANSWERS_RETRY_SECONDS })
}

/** Counts a request that presents no valid token against the limit of its client address. @throws Failure RATE_LIMITED */
export function limitAddress(exchange: LimitedExchange): void {
  consumeAddressLimit(exchange, countAddress(exchange))
}

/**
 * Authenticates a request by a token of another kind than API tokens, which counts against the limit of the client address
 * when it is invalid, and again for as long as the request lasts.
 *
 * @param isKnown whether the token was valid when it was last looked up
 * @param read the look-up
 * @throws Failure RATE_LIMITED, what `read` throws
 */
export async function authenticateOther<T>(
  exchange: LimitedExchange,
  { text, isKnown }: { readonly text: string | undefined; readonly isKnown: boolean },
  read: () => Promise<T>,
): Promise<T> {
  const attempt = () => countInvalid(exchange, read)
  const found = foundOrLimited(
    exchange,
    isKnown || text === undefined ? await attempt() : await lookUp(exchange, text, attempt),
  )
  exchange.context.values.set(lookUpAgainKey, read)
  exchange.server.accessControl.reauthenticator.start()
  return found
}

/** A window and a half, after which most of an overdraft has slid out. */
const ANSWERS_RETRY_SECONDS = 15
/** Of a body or an answer, for one unit of the rate limit. */
const UNIT_BYTES = 64 * 1024
const ENVIRONMENT_HEADER = 'patchbay-environment'
const BEARER = /^bearer +([\x21-\x7e]+)$/i

/** The text after `Bearer ` in the header `authorization`. */
export function bearerToken(context: RequestContext): string | undefined {
  return BEARER.exec(context.header('authorization') ?? '')?.[1]
}

/** @param token `undefined` for a text that cannot be one, for which nothing is looked up */
async function authenticateApiToken(
  exchange: LimitedExchange,
  token: PresentedToken | undefined,
  cost: number,
): Promise<Principal> {
  const { authenticator } = exchange.server.accessControl
  let tokenId = token?.knownId
  if (tokenId === undefined) {
    const attempt = () => countInvalid(exchange, () => authenticator.authenticate(token))
    const found = token === undefined ? await attempt() : await lookUp(exchange, token.hash, attempt)
    tokenId = foundOrLimited(exchange, found).tokenId
  }
  consumeTokenLimit(exchange, tokenId, cost)
  return await authenticator.authenticate(token, exchange.context.header(ENVIRONMENT_HEADER))
}

/** The caller of a link token. Only operations with the access `environment_or_link` know link tokens. */
async function findLink(exchange: LimitedExchange, text: string, cost: number): Promise<Principal | undefined> {
  const { authenticateLink } = exchange.server.accessControl
  const link = await lookUp(exchange, `link ${text}`, () => authenticateLink(text))
  if (link !== undefined) consumeTokenLimit(exchange, link.tokenId, cost)
  return link
}

/** What a look-up comes to, for every request with the same token. */
type Found<T> = { readonly value: T } | { readonly failure: Failure; readonly counted: ReturnType<RateLimiter['take']> }

/** Looks up a token, and counts it against the limit of its client address when it is invalid. */
async function countInvalid<T>(exchange: LimitedExchange, read: () => Promise<T>): Promise<Found<T>> {
  try {
    return { value: await read() }
  } catch (failure) {
    if (!(failure instanceof Failure) || !INVALID.includes(failure.reason)) throw failure
    return { failure, counted: countAddress(exchange) }
  }
}

const INVALID: readonly string[] = ['TOKEN_INVALID', 'TOKEN_MISSING']

function foundOrLimited<T>(exchange: LimitedExchange, found: Found<T>): T {
  if ('value' in found) return found.value
  consumeAddressLimit(exchange, found.counted)
  throw found.failure
}

/** @param key of the token: equal for requests with the same one */
function lookUp<T>({ server, context }: LimitedExchange, key: string, read: () => Promise<T>): Promise<T> {
  const { tokenLookUps, trustedProxies } = server.accessControl
  const { signal } = context
  return tokenLookUps.find({ address: context.clientAddress(trustedProxies), key, signal }, read)
}

/** What counting a request takes. */
type LimitedExchange = Pick<Exchange, 'server' | 'context' | 'operationPath'>

function consumeTokenLimit(exchange: LimitedExchange, tokenId: string, cost: number): void {
  if (cost === 0) return
  const { tokenLimiter, clock } = exchange.server.accessControl
  const what = cost === 1 ? 'requests' : `units in requests, of which this one takes ${cost},`
  consumeRateLimit(exchange, tokenLimiter.take(tokenId, clock.monotonicMs(), cost), 'this token sent more than', what)
}

function countAddress({ server, context }: LimitedExchange): ReturnType<RateLimiter['take']> {
  const { addressLimiter, clock, trustedProxies } = server.accessControl
  return addressLimiter.take(context.clientAddress(trustedProxies), clock.monotonicMs())
}

function consumeAddressLimit(exchange: LimitedExchange, state: ReturnType<RateLimiter['take']>): void {
  consumeRateLimit(exchange, state, 'this address sent, without a valid token, more than', 'requests')
}

/**
 * Routes and services whose answers are those of a third party: `RateLimit-*` there are the third party's, and this service's
 * own limit is `Patchbay-RateLimit-*`.
 */
const PROXIED = /^\/(?:proxy|custom|unified|patchbay\.v1\.(?:ProxyService|UnifiedService))\//

function consumeRateLimit(
  { context, operationPath }: LimitedExchange,
  state: ReturnType<RateLimiter['take']>,
  who: string,
  what: string,
): void {
  if (state === undefined) return
  const prefix = PROXIED.test(operationPath) ? 'patchbay-ratelimit' : 'ratelimit'
  context.setHeader(`${prefix}-limit`, String(state.limit))
  context.setHeader(`${prefix}-remaining`, String(state.remaining))
  context.setHeader(`${prefix}-reset`, String(state.resetSeconds))
  if (state.isAllowed) return
  const message = `${who} ${state.limit} ${what} in the window; wait before the next one`
  throw new Failure('RATE_LIMITED', message, { retryAfterSeconds: state.resetSeconds })
}

function assertAccess({ access, scope }: AdmissionRule, caller: Principal): void {
  if (access === 'team' && caller.kind !== 'team')
    throw new Failure('TEAM_TOKEN_REQUIRED', 'this operation needs a team token')
  if (concernsEnvironment(access) && caller.environmentId === undefined)
    throw new Failure('ENVIRONMENT_REQUIRED', 'a team token names its environment in the header "patchbay-environment"')
  if (scope !== undefined) assertScope(caller, scope)
}
