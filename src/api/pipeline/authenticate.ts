import type { BlockList } from 'node:net'
import { type Clock, Failure } from '../../base/index.ts'
import type { Authenticator, PresentedToken, Principal } from '../../tenancy/index.ts'
import { type Access, concernsEnvironment } from '../access.ts'
import { callerOf } from '../caller.ts'
import type { Exchange } from '../exchange.ts'
import type { RequestContext } from '../request-context.ts'
import type { RateLimiter } from './rate-limiter.ts'
import type { Reauthenticator } from './reauthenticator.ts'

/** What authentication and its rate limits need. */
export interface AccessControl {
  readonly authenticator: Pick<Authenticator, 'parseToken' | 'authenticate'>
  /** The caller that has a link token; `undefined` for another text, and for the token of a link that has ended. */
  readonly authenticateLink: LinkAuthenticator
  /** Rate limits of API tokens, by token id. */
  readonly tokenLimiter: RateLimiter
  /** Rate limits of client addresses, for requests whose token is not known to be valid. */
  readonly addressLimiter: RateLimiter
  readonly trustedProxies: BlockList
  readonly clock: Clock
  readonly reauthenticator: Reauthenticator
}

/** Looks up the caller that presents a link token. */
type LinkAuthenticator = (token: string) => Promise<Principal | undefined>

/**
 * Authenticates and authorizes a request before a byte of its body is read: rate limit, then token, then the access rule
 * of the operation. Every protocol and every HTTP route passes here, and nowhere else.
 *
 * Every request counts against a limit before anything is looked up for it: its token's when the token was valid at
 * its last look-up, else its client address's, which is refunded when the token turns out to be valid.
 *
 * @throws Failure TOKEN_MISSING, TOKEN_INVALID, RATE_LIMITED, ENVIRONMENT_REQUIRED, TEAM_TOKEN_REQUIRED,
 *   RESOURCE_NOT_FOUND for an environment of another team
 */
export async function authenticate(exchange: Exchange, access: Access): Promise<void> {
  const { accessControl } = exchange.server
  const { context } = exchange
  if (access === 'public') return
  // A call that another request carries: that one was counted and authenticated.
  if (context.token !== undefined) return assertAccess(access, callerOf(context))
  const text = bearerToken(context)
  const token = text === undefined ? undefined : accessControl.authenticator.parseToken(text)
  const caller =
    token?.knownId === undefined
      ? await authenticateUnknown(exchange, text, token, access)
      : await authenticateKnown(exchange, token.knownId, token)
  context.setCaller(caller, token)
  assertAccess(access, caller)
  accessControl.reauthenticator.start()
}

/** Counts a public request against the limit of its client address. @throws Failure RATE_LIMITED */
export function limitAddress(exchange: LimitedExchange): void {
  const { server, context } = exchange
  consumeAddressLimit(exchange, context.clientAddress(server.accessControl.trustedProxies))
}

/** Uncounts a request that `limitAddress` counted: its token, of another kind than API tokens, was valid. */
export function refundAddress({ server: { accessControl }, context }: Pick<Exchange, 'server' | 'context'>): void {
  accessControl.addressLimiter.refund(context.clientAddress(accessControl.trustedProxies))
}

const ENVIRONMENT_HEADER = 'patchbay-environment'
const BEARER = /^bearer +([\x21-\x7e]+)$/i

/** The text after `Bearer ` in the header `authorization`. */
export function bearerToken(context: RequestContext): string | undefined {
  return BEARER.exec(context.header('authorization') ?? '')?.[1]
}

async function authenticateKnown(
  exchange: LimitedExchange,
  tokenId: string,
  token: PresentedToken,
): Promise<Principal> {
  const { server, context } = exchange
  consumeTokenLimit(exchange, tokenId)
  return await server.accessControl.authenticator.authenticate(token, context.header(ENVIRONMENT_HEADER))
}

async function authenticateUnknown(
  exchange: LimitedExchange,
  text: string | undefined,
  token: PresentedToken | undefined,
  access: Access,
): Promise<Principal> {
  const { context } = exchange
  const { accessControl } = exchange.server
  const address = context.clientAddress(accessControl.trustedProxies)
  consumeAddressLimit(exchange, address)
  if (text === undefined)
    throw new Failure('TOKEN_MISSING', 'send an API token in the header "Authorization: Bearer <token>"')
  // No other rule knows link tokens: to all other operations they are texts that are no token.
  const link = access === 'environment_or_link' ? await accessControl.authenticateLink(text) : undefined
  const caller = link ?? (await accessControl.authenticator.authenticate(token, context.header(ENVIRONMENT_HEADER)))
  accessControl.addressLimiter.refund(address)
  consumeTokenLimit(exchange, caller.tokenId)
  return caller
}

/** What counting a request takes. */
type LimitedExchange = Pick<Exchange, 'server' | 'context' | 'operationPath'>

function consumeTokenLimit(exchange: LimitedExchange, tokenId: string): void {
  const { tokenLimiter, clock } = exchange.server.accessControl
  consumeRateLimit(exchange, tokenLimiter.take(tokenId, clock.monotonicMs()), 'this token sent more than')
}

function consumeAddressLimit(exchange: LimitedExchange, address: string): void {
  const { addressLimiter, clock } = exchange.server.accessControl
  const who = 'this address sent, without a valid token, more than'
  consumeRateLimit(exchange, addressLimiter.take(address, clock.monotonicMs()), who)
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
): void {
  if (state === undefined) return
  const prefix = PROXIED.test(operationPath) ? 'patchbay-ratelimit' : 'ratelimit'
  context.setHeader(`${prefix}-limit`, String(state.limit))
  context.setHeader(`${prefix}-remaining`, String(state.remaining))
  context.setHeader(`${prefix}-reset`, String(state.resetSeconds))
  if (state.isAllowed) return
  const message = `${who} ${state.limit} requests in the window; wait before the next one`
  throw new Failure('RATE_LIMITED', message, { retryAfterSeconds: state.resetSeconds })
}

function assertAccess(access: Access, caller: Principal): void {
  if (access === 'team' && caller.kind !== 'team')
    throw new Failure('TEAM_TOKEN_REQUIRED', 'this operation needs a team token')
  if (concernsEnvironment(access) && caller.environmentId === undefined)
    throw new Failure('ENVIRONMENT_REQUIRED', 'a team token names its environment in the header "patchbay-environment"')
}
