import type { BlockList } from 'node:net'
import { type Clock, Failure } from '../../base/index.ts'
import type { PresentedToken, Principal } from '../../tenancy/index.ts'
import type { Access, Admission } from '../caller.ts'
import type { RequestContext } from '../request-context.ts'
import type { RateLimiter } from './rate-limiter.ts'
import type { Reauthenticator } from './reauthenticator.ts'

/** What the gate asks. */
export interface AccessControl {
  readonly admission: Admission
  /** Budgets of API tokens, by token id. */
  readonly tokenLimiter: RateLimiter
  /** Budgets of client addresses, for requests whose token is not known to be valid. */
  readonly addressLimiter: RateLimiter
  readonly trustedProxies: BlockList
  readonly clock: Clock
  readonly readmission: Reauthenticator
}

/**
 * Lets a call in or refuses it, before a byte of its body is read: budget, then token, then what the operation asks.
 *
 * Every request takes from a budget before anything is looked up for it: from its token's when the token was valid at
 * its last look-up, else from its client address's, which gets it back when the token turns out to be valid.
 *
 * @throws Failure TOKEN_MISSING, TOKEN_INVALID, RATE_LIMITED, ENVIRONMENT_REQUIRED, TEAM_TOKEN_REQUIRED,
 *   RESOURCE_NOT_FOUND for an environment of another team
 */
export async function authenticate(gate: AccessControl, access: Access, call: RequestContext): Promise<void> {
  if (access === 'public') return
  const text = bearerToken(call)
  const token = text === undefined ? undefined : gate.admission.parseToken(text)
  const principal =
    token?.knownId === undefined
      ? await authenticateUnknown(gate, text, token, call)
      : await authenticateKnown(gate, token.knownId, token, call)
  call.admitAs(principal, token)
  requireAccess(access, principal)
  gate.readmission.start()
}

const ENVIRONMENT_HEADER = 'patchbay-environment'
const BEARER = /^bearer +([\x21-\x7e]+)$/i

function bearerToken(call: RequestContext): string | undefined {
  return BEARER.exec(call.requestHeader('authorization') ?? '')?.[1]
}

async function authenticateKnown(
  gate: AccessControl,
  tokenId: string,
  token: PresentedToken,
  call: RequestContext,
): Promise<Principal> {
  consumeTokenLimit(gate, tokenId, call)
  return await gate.admission.authenticate(token, call.requestHeader(ENVIRONMENT_HEADER))
}

async function authenticateUnknown(
  gate: AccessControl,
  text: string | undefined,
  token: PresentedToken | undefined,
  call: RequestContext,
): Promise<Principal> {
  const address = call.clientAddress(gate.trustedProxies)
  consumeAddressLimit(gate, address, call)
  if (text === undefined)
    throw new Failure('TOKEN_MISSING', 'send an API token in the header "Authorization: Bearer <token>"')
  const principal = await gate.admission.authenticate(token, call.requestHeader(ENVIRONMENT_HEADER))
  gate.addressLimiter.refund(address)
  consumeTokenLimit(gate, principal.tokenId, call)
  return principal
}

function consumeTokenLimit({ tokenLimiter, clock }: AccessControl, tokenId: string, call: RequestContext): void {
  const who = 'this token sent more than'
  consumeRateLimit(call, tokenLimiter.take(tokenId, clock.monotonicMs()), who)
}

function consumeAddressLimit({ addressLimiter, clock }: AccessControl, address: string, call: RequestContext): void {
  const who = 'this address sent, without a valid token, more than'
  consumeRateLimit(call, addressLimiter.take(address, clock.monotonicMs()), who)
}

function consumeRateLimit(call: RequestContext, budget: ReturnType<RateLimiter['take']>, who: string): void {
  if (budget === undefined) return
  call.setHeader('ratelimit-limit', String(budget.limit))
  call.setHeader('ratelimit-remaining', String(budget.remaining))
  call.setHeader('ratelimit-reset', String(budget.resetSeconds))
  if (budget.isAllowed) return
  const message = `${who} ${budget.limit} requests in the window; wait before the next one`
  throw new Failure('RATE_LIMITED', message, { retryAfterSeconds: budget.resetSeconds })
}

function requireAccess(access: Access, principal: Principal): void {
  if (access === 'team' && principal.kind !== 'team')
    throw new Failure('TEAM_TOKEN_REQUIRED', 'this operation needs a team token')
  if (access === 'environment' && principal.environmentId === undefined)
    throw new Failure('ENVIRONMENT_REQUIRED', 'a team token names its environment in the header "patchbay-environment"')
}
