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
export async function authenticate({ server: { accessControl }, context }: Exchange, access: Access): Promise<void> {
  if (access === 'public') return
  // A call that another request carries: that one was counted and authenticated.
  if (context.token !== undefined) return assertAccess(access, callerOf(context))
  const text = bearerToken(context)
  const token = text === undefined ? undefined : accessControl.authenticator.parseToken(text)
  const caller =
    token?.knownId === undefined
      ? await authenticateUnknown(accessControl, text, token, context, access)
      : await authenticateKnown(accessControl, token.knownId, token, context)
  context.setCaller(caller, token)
  assertAccess(access, caller)
  accessControl.reauthenticator.start()
}

/** Counts a public request against the limit of its client address. @throws Failure RATE_LIMITED */
export function limitAddress({ server: { accessControl }, context }: Pick<Exchange, 'server' | 'context'>): void {
  consumeAddressLimit(accessControl, context.clientAddress(accessControl.trustedProxies), context)
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
  accessControl: AccessControl,
  tokenId: string,
  token: PresentedToken,
  context: RequestContext,
): Promise<Principal> {
  consumeTokenLimit(accessControl, tokenId, context)
  return await accessControl.authenticator.authenticate(token, context.header(ENVIRONMENT_HEADER))
}

async function authenticateUnknown(
  accessControl: AccessControl,
  text: string | undefined,
  token: PresentedToken | undefined,
  context: RequestContext,
  access: Access,
): Promise<Principal> {
  const address = context.clientAddress(accessControl.trustedProxies)
  consumeAddressLimit(accessControl, address, context)
  if (text === undefined)
    throw new Failure('TOKEN_MISSING', 'send an API token in the header "Authorization: Bearer <token>"')
  // No other rule knows link tokens: to all other operations they are texts that are no token.
  const link = access === 'environment_or_link' ? await accessControl.authenticateLink(text) : undefined
  const caller = link ?? (await accessControl.authenticator.authenticate(token, context.header(ENVIRONMENT_HEADER)))
  accessControl.addressLimiter.refund(address)
  consumeTokenLimit(accessControl, caller.tokenId, context)
  return caller
}

function consumeTokenLimit({ tokenLimiter, clock }: AccessControl, tokenId: string, context: RequestContext): void {
  const who = 'this token sent more than'
  consumeRateLimit(context, tokenLimiter.take(tokenId, clock.monotonicMs()), who)
}

function consumeAddressLimit({ addressLimiter, clock }: AccessControl, address: string, context: RequestContext): void {
  const who = 'this address sent, without a valid token, more than'
  consumeRateLimit(context, addressLimiter.take(address, clock.monotonicMs()), who)
}

function consumeRateLimit(context: RequestContext, state: ReturnType<RateLimiter['take']>, who: string): void {
  if (state === undefined) return
  context.setHeader('ratelimit-limit', String(state.limit))
  context.setHeader('ratelimit-remaining', String(state.remaining))
  context.setHeader('ratelimit-reset', String(state.resetSeconds))
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
